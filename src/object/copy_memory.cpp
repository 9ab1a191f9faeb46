// SPDX-License-Identifier: Apache-2.0
#include "object/copy_memory.hpp"

#include <algorithm>
#include <bit>
#include <new>
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
static_assert(whole_bytes(longest_copy) <= copy_rooms::longest);

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

copy_block* copy_memory::take(std::uint64_t address, std::size_t bytes) {
  void* const room = rooms_.take(whole_bytes(bytes));
  if (room == nullptr) return nullptr;
  auto* const block = ::new (room) copy_block{};
  block->address = address;
  block->bytes = static_cast<std::uint32_t>(bytes);
  return block;
}

void copy_memory::free(copy_block* block) {
  block->bytes = 0;  // no address is traced to an object of it
  rooms_.give_back(block);
}

void copy_memory::give_back(copy_block* block) { free(block); }

void copy_memory::free_old(std::span<const copy_block* const> used) {
  std::erase_if(old_, [&](copy_block* block) {
    if (std::find(used.begin(), used.end(), block) != used.end()) return false;
    free(block);
    return true;
  });
}

void copy_memory::make_good(copy_block* block) {
  block->is_good = true;
  good_bytes_ += whole_bytes(block->bytes);
  block->older = newest_;
  block->newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = block;
  newest_ = block;
  enter(block);
}

void copy_memory::make_object(copy_block* block) {
  block->is_good = block->is_object = true;
  object_bytes_ += whole_bytes(block->bytes);
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
  --good_count_;
  if (block->is_object) {
    object_bytes_ -= whole_bytes(block->bytes);
  } else {
    good_bytes_ -= whole_bytes(block->bytes);
    (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
    (block->newer != nullptr ? block->newer->older : newest_) = block->older;
  }
  take_out(block);
  old_.push_back(block);
}

std::uint64_t copy_memory::original(std::uint64_t address) const {
  const auto* const block = static_cast<const copy_block*>(rooms_.room_at(address));
  if (block == nullptr) return address;
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(block + 1);
  return offset <= block->bytes && block->bytes != 0 ? block->address + offset : address;
}

}  // namespace sojourn::detail
