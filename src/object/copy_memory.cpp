// SPDX-License-Identifier: Apache-2.0
#include "object/copy_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

namespace sojourn::detail {

namespace {

// Accesses look here while a rank has no copies.
constexpr unsigned shift_of_two_places = 63;
copy_block* no_places[2] = {&no_copy, &no_copy};

constexpr std::size_t first_places = 1024;

constexpr std::size_t whole_bytes(std::size_t bytes) {
  return sizeof(copy_block) + (bytes + 15) / 16 * 16;
}
std::size_t whole_bytes(const copy_block& block) {
  return whole_bytes(block.bytes) + block.read_length;
}
static_assert(whole_bytes(longest_copy) <= copy_rooms::longest);

std::uint64_t hash_of(const std::byte* message, std::size_t bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(message), bytes});
}

std::unique_ptr<copy_block*[]> empty_places(std::size_t count) {
  auto places = std::make_unique_for_overwrite<copy_block*[]>(count);
  std::fill_n(places.get(), count, &no_copy);
  return places;
}

unsigned shift_of(std::size_t places) {
  return 64 - static_cast<unsigned>(std::countr_zero(places));
}

}  // namespace

copy_block no_copy{.address = ~std::uint64_t{0}};
copy_places copies{no_places, shift_of_two_places};

copy_memory::copy_memory(std::size_t most)
    : most_(most), rooms_(most), place_count_(first_places), places_(empty_places(first_places)) {
  copies = {places_.get(), shift_of(place_count_)};
}

copy_memory::~copy_memory() { copies = {no_places, shift_of_two_places}; }

copy_block* copy_memory::take(std::uint64_t address, object_shape shape) {
  void* const room = rooms_.take(whole_bytes(shape.bytes));
  if (room == nullptr) return nullptr;
  auto* const block = ::new (room) copy_block{};
  block->address = address;
  block->bytes = static_cast<std::uint32_t>(shape.bytes);
  block->type = shape.type;
  return block;
}

void copy_memory::fill(copy_block* block, const std::byte* from, std::size_t bytes) {
  if (block->type == 0) {
    std::memcpy(block->object(), from, block->bytes);
    return;
  }
  const std::uint64_t hash = hash_of(from, bytes);
  if (block->is_made && block->read_from == hash && block->read_length == bytes) return;
  destroy(block);
  object_type_at(block->type)->read(block->object(), from, bytes);
  block->is_made = true;
  block->read_from = hash;
  if (block->is_old) old_bytes_ += bytes - block->read_length;
  block->read_length = static_cast<std::uint32_t>(bytes);
}

void copy_memory::note_sent(copy_block* block, const std::byte* written, std::size_t bytes) {
  object_bytes_ -= whole_bytes(*block);
  block->read_from = hash_of(written, bytes);
  block->read_length = static_cast<std::uint32_t>(bytes);
  object_bytes_ += whole_bytes(*block);
}

bool copy_memory::are_alike(const copy_block& one, const copy_block& other) {
  return one.is_made && other.is_made && one.type == other.type &&
         one.read_from == other.read_from && one.read_length == other.read_length;
}

void copy_memory::destroy(copy_block* block) {
  if (std::exchange(block->is_made, false)) object_type_at(block->type)->destroy(block->object());
}

void copy_memory::free(copy_block* block) {
  destroy(block);
  block->bytes = 0;  // no address is traced to an object of it
  rooms_.give_back(block);
}

void copy_memory::give_back(copy_block* block) { free(block); }

void copy_memory::free_old(std::span<const copy_block* const> used) {
  std::erase_if(old_, [&](copy_block* block) {
    if (std::find(used.begin(), used.end(), block) != used.end()) return false;
    old_bytes_ -= whole_bytes(*block);
    free(block);
    return true;
  });
}

void copy_memory::make_good(copy_block* block) {
  block->is_good = true;
  good_bytes_ += whole_bytes(*block);
  block->older = newest_;
  block->newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = block;
  newest_ = block;
  enter(block);
}

void copy_memory::make_object(copy_block* block) {
  block->is_good = block->is_object = true;
  object_bytes_ += whole_bytes(*block);
  enter(block);
}

void copy_memory::enter(copy_block* block) {
  if (++good_count_ > place_count_) use_more_places();
  put_first(block);
}

void copy_memory::put_first(copy_block* block) {
  copy_block*& first = place_of_copy(block->address);
  block->next = first;
  first = block;
}

void copy_memory::take_out(copy_block* block) {
  copy_block** at = &place_of_copy(block->address);
  while (*at != block) at = &(*at)->next;
  *at = block->next;
}

void copy_memory::use_more_places() {
  const std::size_t old_count = place_count_;
  place_count_ *= 4;
  const auto old = std::exchange(places_, empty_places(place_count_));
  copies = {places_.get(), shift_of(place_count_)};
  for (std::size_t i = 0; i < old_count; ++i) {
    for (copy_block* block = old[i]; block != &no_copy;)
      put_first(std::exchange(block, block->next));
  }
}

copy_block* copy_memory::find(std::uint64_t address) {
  copy_block* found = place_of_copy(address);
  if (found->address == address && found != &no_copy) return found;
  while (found != &no_copy && found->address != address) found = found->next;
  if (found == &no_copy) return nullptr;
  take_out(found);
  put_first(found);
  return found;
}

void copy_memory::make_old(copy_block* block) {
  block->is_good = false;
  block->is_old = true;
  --good_count_;
  if (block->is_object) {
    object_bytes_ -= whole_bytes(*block);
  } else {
    good_bytes_ -= whole_bytes(*block);
    (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
    (block->newer != nullptr ? block->newer->older : newest_) = block->older;
  }
  take_out(block);
  old_.push_back(block);
  old_bytes_ += whole_bytes(*block);
}

std::uint64_t copy_memory::original(std::uint64_t address) const {
  const auto* const block = static_cast<const copy_block*>(rooms_.room_at(address));
  if (block == nullptr) return address;
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(block + 1);
  return offset <= block->bytes && block->bytes != 0 ? block->address + offset : address;
}

}  // namespace sojourn::detail
