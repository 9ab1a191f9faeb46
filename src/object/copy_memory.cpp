// SPDX-License-Identifier: Apache-2.0
#include "object/copy_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

#include "base/check.hpp"

namespace sojourn::detail {

namespace {

// Accesses look here while a rank has no copies.
constexpr unsigned shift_of_two_places = 63;
copy_place no_places[2] = {};

constexpr std::size_t first_places = 1024;
constexpr std::size_t longest_copy = 65536;

constexpr std::size_t whole_bytes(std::size_t bytes) {
  return sizeof(copy_block) + (bytes + 15) / 16 * 16;
}

}  // namespace

copy_places copies{no_places, shift_of_two_places};

address_range::address_range(std::size_t bytes) : bytes_(bytes) {
  void* const range = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  first_ = static_cast<std::byte*>(range);
}

address_range::~address_range() { ::munmap(first_, bytes_); }

// Copies of many lengths that come and go leave gaps, so there are more addresses than memory.
copy_memory::copy_memory(std::size_t most)
    : most_(most),
      range_(std::bit_ceil(std::max<std::size_t>(most, longest_copy)) * 16),
      upstream_(range_.first(), range_.bytes(), std::pmr::null_memory_resource()),
      pool_(std::pmr::pool_options{.max_blocks_per_chunk = 64,
                                   .largest_required_pool_block = 2 * longest_copy},
            &upstream_),
      places_(std::make_unique<copy_place[]>(first_places)),
      place_count_(first_places) {
  copies = {places_.get(), 64 - static_cast<unsigned>(std::countr_zero(place_count_))};
}

copy_memory::~copy_memory() { copies = {no_places, shift_of_two_places}; }

copy_block* copy_memory::take(std::uint64_t address, std::size_t bytes) {
  copy_block* block = nullptr;
  try {
    block = ::new (pool_.allocate(whole_bytes(bytes), 16)) copy_block{};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  block->address = address;
  block->bytes = static_cast<std::uint32_t>(bytes);
  by_place_.emplace(reinterpret_cast<std::uint64_t>(block), block);
  return block;
}

void copy_memory::free(copy_block* block) {
  by_place_.erase(reinterpret_cast<std::uint64_t>(block));
  pool_.deallocate(block, whole_bytes(block->bytes), 16);
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
  good_[block->address] = block;
  if (good_.size() > place_count_) grow_places();
  place(block);
}

void copy_memory::place(copy_block* block) {
  place_of_copy(block->address) = {block->address, block};
}

void copy_memory::grow_places() {
  place_count_ *= 4;
  places_ = std::make_unique<copy_place[]>(place_count_);
  copies = {places_.get(), 64 - static_cast<unsigned>(std::countr_zero(place_count_))};
  for (const auto& [address, block] : good_) place(block);
}

copy_block* copy_memory::find(std::uint64_t address) {
  const auto known = good_.find(address);
  if (known == good_.end()) return nullptr;
  place(known->second);
  return known->second;
}

void copy_memory::make_old(copy_block* block) {
  block->is_good = false;
  good_bytes_ -= whole_bytes(block->bytes);
  (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
  (block->newer != nullptr ? block->newer->older : newest_) = block->older;
  good_.erase(block->address);
  if (copy_place& place = place_of_copy(block->address); place.block == block) place = {};
  old_.push_back(block);
}

std::uint64_t copy_memory::original(std::uint64_t address) const {
  auto after = by_place_.upper_bound(address);
  if (after == by_place_.begin()) return address;
  copy_block* const block = std::prev(after)->second;
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(block->object());
  return offset <= block->bytes ? block->address + offset : address;
}

}  // namespace sojourn::detail
