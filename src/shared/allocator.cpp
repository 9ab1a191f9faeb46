// SPDX-License-Identifier: Apache-2.0
#include "shared/allocator.hpp"

#include <algorithm>

#include "shared/page.hpp"

namespace sojourn::detail::pages {

namespace {

constexpr std::uint64_t line = 64;

std::uint64_t up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

}  // namespace

allocator::allocator(std::uint64_t first, std::uint64_t bytes, std::pmr::memory_resource* memory)
    : first_(first), end_(first + bytes), fresh_(first), free_(memory), sizes_(memory) {}

allocator::block allocator::allocate(std::uint64_t bytes, std::uint64_t align) {
  if (bytes > capacity()) return {0, false};
  const std::uint64_t unit = bytes >= page_bytes ? page_bytes : line;
  bytes = up(bytes, unit);
  align = std::max(align, unit);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, size] = *it;
    const std::uint64_t at = up(begin, align);
    if (at + bytes > begin + size) continue;
    free_.erase(it);
    if (at != begin) free_.emplace(begin, at - begin);
    if (at + bytes != begin + size) free_.emplace(at + bytes, begin + size - at - bytes);
    sizes_.emplace(at, bytes);
    allocated_ += bytes;
    return {at, true};
  }
  const std::uint64_t at = up(fresh_, align);
  if (at > end_ || bytes > end_ - at) return {0, false};
  if (at != fresh_) give_back(fresh_, at - fresh_);
  fresh_ = at + bytes;
  sizes_.emplace(at, bytes);
  allocated_ += bytes;
  return {at, false};
}

bool allocator::free(std::uint64_t at) {
  const auto it = sizes_.find(at);
  if (it == sizes_.end()) return false;
  allocated_ -= it->second;
  give_back(at, it->second);
  sizes_.erase(it);
  return true;
}

void allocator::give_back(std::uint64_t at, std::uint64_t bytes) {
  auto next = free_.lower_bound(at);
  if (next != free_.end() && at + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(at, bytes);
}

}  // namespace sojourn::detail::pages
