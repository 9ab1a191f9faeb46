// SPDX-License-Identifier: Apache-2.0
#include "object/copy_rooms.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace sojourn::detail {

address_range::address_range(std::size_t bytes) : bytes_(bytes) {
  void* const range = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  first_ = static_cast<std::byte*>(range);
}

address_range::~address_range() { ::munmap(first_, bytes_); }

// Each length has a chunk of its own, and blocks that come and go leave chunks with few of them: so
// there are more addresses than memory.
copy_rooms::copy_rooms(std::size_t most)
    : range_(std::bit_ceil(std::max<std::size_t>(most, longest)) * 8 + lengths * chunk_bytes) {
  std::fill(std::begin(with_room_), std::end(with_room_), none);
}

/// Lengths above 1 KiB have four steps between powers of two.
unsigned copy_rooms::length_of(std::size_t bytes) {
  constexpr std::size_t small = small_lengths * 16;
  if (bytes <= small) return static_cast<unsigned>((bytes + 15) / 16 - (bytes != 0));
  const unsigned power = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
  const std::size_t step = (std::size_t{1} << power) / 4;
  const auto steps = static_cast<unsigned>((bytes - (std::size_t{1} << power) + step - 1) / step);
  return small_lengths + (power - 10) * 4 + steps - 1;
}

std::size_t copy_rooms::bytes_of(unsigned length) {
  if (length < small_lengths) return (length + 1) * std::size_t{16};
  const unsigned power = 10 + (length - small_lengths) / 4;
  const unsigned steps = (length - small_lengths) % 4 + 1;
  return (std::size_t{1} << power) / 4 * (4 + steps);
}

bool copy_rooms::is_full(const chunk& c) {
  return c.free == nullptr && (c.begun + 1) * std::size_t{c.room_bytes} > chunk_bytes;
}

void copy_rooms::put_in_list(std::uint32_t index) {
  chunk& c = chunks_[index];
  std::uint32_t& first = with_room_[c.length];
  c.before = none;
  c.after = first;
  if (first != none) chunks_[first].before = index;
  first = index;
}

void copy_rooms::take_from_list(std::uint32_t index) {
  const chunk& c = chunks_[index];
  (c.before != none ? chunks_[c.before].after : with_room_[c.length]) = c.after;
  if (c.after != none) chunks_[c.after].before = c.before;
}

std::uint32_t copy_rooms::begin_chunk(unsigned length) {
  std::uint32_t index = none;
  if (!empty_.empty()) {
    index = empty_.back();
    empty_.pop_back();
  } else {
    if ((chunks_.size() + 1) * chunk_bytes > range_.bytes()) return none;
    index = static_cast<std::uint32_t>(chunks_.size());
    chunks_.emplace_back();
  }
  chunks_[index] = {};
  chunks_[index].length = length;
  chunks_[index].room_bytes = static_cast<std::uint32_t>(bytes_of(length));
  put_in_list(index);
  return index;
}

void* copy_rooms::take(std::size_t bytes) {
  const unsigned length = length_of(bytes);
  std::uint32_t index = with_room_[length];
  if (index == none && (index = begin_chunk(length)) == none) return nullptr;
  chunk& c = chunks_[index];
  void* room = c.free;
  if (room != nullptr) {
    std::memcpy(&c.free, room, sizeof c.free);
  } else {
    room = range_.first() + index * chunk_bytes + c.begun++ * std::size_t{c.room_bytes};
  }
  ++c.used;
  if (is_full(c)) take_from_list(index);
  return room;
}

void copy_rooms::give_back(void* room) {
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(room) - range_.first());
  const auto index = static_cast<std::uint32_t>(offset / chunk_bytes);
  chunk& c = chunks_[index];
  const bool was_full = is_full(c);
  std::memcpy(room, &c.free, sizeof c.free);
  c.free = room;
  --c.used;
  if (was_full) put_in_list(index);
  // One is kept, because the next block mostly has the length of the last one.
  const bool is_only_one = c.before == none && c.after == none;
  if (c.used == 0 && !is_only_one) {
    take_from_list(index);
    empty_.push_back(index);
  }
}

void* copy_rooms::room_at(std::uint64_t address) const {
  const std::uint64_t offset = address - first_address();
  if (offset / chunk_bytes >= chunks_.size()) return nullptr;
  const chunk& c = chunks_[offset / chunk_bytes];
  const std::uint64_t room = offset % chunk_bytes / c.room_bytes;
  if (room >= c.begun) return nullptr;
  return range_.first() + offset / chunk_bytes * chunk_bytes + room * c.room_bytes;
}

}  // namespace sojourn::detail
