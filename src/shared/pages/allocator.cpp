// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/allocator.hpp"

#include <algorithm>
#include <iterator>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

namespace {

constexpr std::uint64_t line = 64;

std::uint64_t up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

std::uint64_t whole_pages(std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t first = up(at, page_bytes) / page_bytes;
  const std::uint64_t end = (at + bytes) / page_bytes;
  return end > first ? end - first : 0;
}

}  // namespace

allocator::allocator(std::uint64_t first, std::uint64_t bytes, std::pmr::memory_resource* memory)
    : first_(first),
      end_(first + bytes),
      fresh_(first),
      free_(memory),
      by_bytes_(memory),
      by_pages_(memory),
      sizes_(memory) {}

allocator::block allocator::allocate(std::uint64_t bytes, std::uint64_t align) {
  if (bytes > capacity() || align > capacity()) return {0, false};
  const std::uint64_t unit = bytes >= page_bytes ? page_bytes : line;
  bytes = up(bytes, unit);
  align = std::max(align, unit);
  // If `align` is more than `unit`: a free block of this length has room for an aligned block
  // wherever it begins.
  const std::uint64_t needed = bytes + align - unit;
  const bool of_pages = unit == page_bytes;
  const by_length& suited = of_pages ? by_pages_ : by_bytes_;
  const auto found = suited.lower_bound({of_pages ? needed / page_bytes : needed, 0});
  if (found != suited.end()) {
    const auto hole = free_.find(found->second);
    const auto [begin, length] = *hole;
    const std::uint64_t at = up(begin, align);
    remove_free(hole);
    return deal_out(begin, at, bytes, begin + length, true);
  }
  if (const std::uint64_t at = up(fresh_, align); at <= end_ && bytes <= end_ - at) {
    const std::uint64_t begin = std::exchange(fresh_, at + bytes);
    return deal_out(begin, at, bytes, fresh_, false);
  }
  // Last, tries the free block right before `fresh_`, together with new memory behind it.
  if (free_.empty()) return {0, false};
  const auto hole = std::prev(free_.end());
  const auto [begin, length] = *hole;
  const std::uint64_t at = up(begin, align);
  if (begin + length != fresh_ || at > end_ || bytes > end_ - at) return {0, false};
  remove_free(hole);
  fresh_ = std::max(fresh_, at + bytes);
  return deal_out(begin, at, bytes, fresh_, true);
}

/// Deals out [at, at + bytes) of the range [begin, end), and frees the rest of it.
allocator::block allocator::deal_out(std::uint64_t begin, std::uint64_t at, std::uint64_t bytes,
                                     std::uint64_t end, bool used_before) {
  if (at != begin) give_back(begin, at - begin);
  if (at + bytes < end) give_back(at + bytes, end - at - bytes);
  sizes_.emplace(at, bytes);
  allocated_ += bytes;
  return {at, used_before};
}

std::uint64_t allocator::bytes_of(std::uint64_t at) const {
  const auto it = sizes_.find(at);
  return it == sizes_.end() ? 0 : it->second;
}

bool allocator::free(std::uint64_t at) {
  const auto it = sizes_.find(at);
  if (it == sizes_.end()) return false;
  allocated_ -= it->second;
  give_back(at, it->second);
  sizes_.erase(it);
  return true;
}

std::uint64_t allocator::longest_free() const {
  const std::uint64_t of_free = by_bytes_.empty() ? 0 : by_bytes_.rbegin()->first;
  return std::max(of_free, end_ - fresh_);
}

void allocator::save(file_writer& to) const {
  to.put(fresh_);
  to.put(std::uint64_t{sizes_.size()});
  for (const auto& [at, bytes] : sizes_) {
    to.put(at);
    to.put(bytes);
  }
}

void allocator::load(file_reader& from) {
  from.get(fresh_);
  if (fresh_ != first_) add_free(first_, fresh_ - first_);
  for (auto count = from.get<std::uint64_t>(); count != 0; --count) {
    const auto at = from.get<std::uint64_t>();
    const auto bytes = from.get<std::uint64_t>();
    const auto hole = std::prev(free_.upper_bound(at));
    const auto [begin, length] = *hole;
    remove_free(hole);
    (void)deal_out(begin, at, bytes, begin + length, true);
  }
}

allocator::ranges allocator::pages_in_use() const {
  ranges all(free_.get_allocator());
  for (const auto& [at, bytes] : sizes_)
    all.emplace_back(at / page_bytes, (at + bytes + page_bytes - 1) / page_bytes);
  std::sort(all.begin(), all.end());
  // Small blocks share pages.
  std::uint64_t end = 0;
  for (auto& [first, last] : all) {
    first = std::max(first, end);
    end = last = std::max(first, last);
  }
  return all;
}

void allocator::give_back(std::uint64_t at, std::uint64_t bytes) {
  auto next = free_.lower_bound(at);
  if (next != free_.end() && at + bytes == next->first) {
    bytes += next->second;
    next = remove_free(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  add_free(at, bytes);
}

void allocator::add_free(std::uint64_t at, std::uint64_t bytes) {
  free_.emplace(at, bytes);
  by_bytes_.emplace(bytes, at);
  if (const std::uint64_t pages = whole_pages(at, bytes); pages != 0) by_pages_.emplace(pages, at);
}

allocator::free_blocks::iterator allocator::remove_free(free_blocks::iterator hole) {
  by_bytes_.erase({hole->second, hole->first});
  by_pages_.erase({whole_pages(hole->first, hole->second), hole->first});
  return free_.erase(hole);
}

}  // namespace sojourn::detail::pages
