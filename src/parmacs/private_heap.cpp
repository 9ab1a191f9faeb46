// SPDX-License-Identifier: Apache-2.0
#include "parmacs/private_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

private_heap program_heap;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t large = std::size_t{1} << 20;
/// Every block begins so; it says that the words below it are a head.
constexpr std::uint64_t signature = 0x5a17'c0de'0000'0000;

std::uint64_t up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

/// The sizes of blocks: multiples of 16 up to 128, then four to each doubling.
std::size_t class_of(std::size_t bytes) {
  if (bytes <= 128) return (bytes + 15) / 16 - 1;
  const auto top = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  const std::size_t quarter = (bytes - 1) >> (top - 2) & 3;
  return 8 + (top - 7) * 4 + quarter;
}
std::size_t size_of_class(std::size_t c) {
  if (c < 8) return (c + 1) * 16;
  const std::size_t top = (c - 8) / 4 + 7;
  return (std::size_t{1} << top) + ((c - 8) % 4 + 1) * (std::size_t{1} << (top - 2));
}

}  // namespace

/// In front of each block, and of a place in it that was asked for with a larger alignment.
struct private_heap::block_head {
  std::uint64_t begin;  ///< Where the block begins, behind its own head.
  std::uint64_t check;  ///< The signature and the class; with 2^31 while the block is free.
  std::size_t size_class() const { return check & 0xff; }
  bool is_whole() const { return (check & ~std::uint64_t{0xff}) == signature; }
};

void private_heap::attach(int rank, int ranks) {
  low_ = addresses.program_heap();
  bytes_ = addresses.program_heap_bytes();
  rank_ = rank;
  first_bytes_ = ranks == 1 ? bytes_ : bytes_ / 2;
  other_bytes_ = ranks == 1 ? 0 : first_bytes_ / static_cast<unsigned>(ranks - 1) / large * large;
  part_low_ =
      rank == 0 ? low_ : low_ + first_bytes_ + static_cast<unsigned>(rank - 1) * other_bytes_;
  part_high_ = part_low_ + (rank == 0 ? first_bytes_ : other_bytes_);
  open_ = part_low_;
  reset({});
}

int private_heap::rank_of(std::uint64_t address) const {
  if (address - low_ < first_bytes_ || other_bytes_ == 0) return 0;
  return 1 + static_cast<int>((address - low_ - first_bytes_) / other_bytes_);
}

void private_heap::reset(range kept) {
  next_ = std::max(part_low_, kept.high);
  sealed_end_ = next_;
  free_ = {};
  sealed_free_ = {};
  // What comes from here on is zero, as if it had never been used.
  if (open_ > part_low_)
    madvise(reinterpret_cast<void*>(part_low_), open_ - part_low_, MADV_DONTNEED);
  if (!grow(next_))
    die("out of memory: a copy of %llu KiB that a process has from malloc() cannot be mapped (%s)",
        static_cast<unsigned long long>((next_ - part_low_) >> 10), std::strerror(errno));
}

bool private_heap::grow(std::uint64_t end) {
  if (end <= open_) return true;
  if (end > part_high_ || end < next_) return false;
  // Few changes of protection: an eighth of what there is, at least.
  const std::uint64_t step = std::max<std::uint64_t>(large, up((open_ - part_low_) / 8, page));
  const std::uint64_t to = std::min(part_high_, up(std::max(end, open_ + step), page));
  if (mprotect(reinterpret_cast<void*>(open_), to - open_, PROT_READ | PROT_WRITE) != 0)
    return false;
  open_ = to;
  return true;
}

void* private_heap::take(std::size_t bytes, std::size_t asked, bool& is_zero) {
  const std::size_t c = class_of(std::max<std::size_t>(bytes, 1));
  if (c < classes && free_[c] != nullptr) {
    free_block* first = free_[c];
    free_[c] = first->next;
    const std::size_t size = size_of_class(c);
    is_zero = size >= large;  // but for the link
    first->next = nullptr;
    auto* head = reinterpret_cast<block_head*>(first) - 1;
    head->check = signature | c;
    return first;
  }
  const std::uint64_t begin = next_ + sizeof(block_head);
  if (c >= classes || !grow(begin + size_of_class(c))) {
    std::fprintf(stderr, "sojourn: malloc() of %zu bytes on rank %d: %s\n", asked, job.me,
                 c < classes && begin + size_of_class(c) <= part_high_
                     ? "the system has no memory for it"
                     : "the addresses that a process has for this are used up; set "
                       "SOJOURN_REGION_GIB to a larger region");
    return nullptr;
  }
  next_ = begin + size_of_class(c);
  *(reinterpret_cast<block_head*>(begin) - 1) = {begin, signature | c};
  is_zero = true;
  return reinterpret_cast<void*>(begin);
}

void* private_heap::allocate(std::size_t bytes, std::size_t align, bool zeroed) {
  const bool aligned = align > sizeof(block_head);
  const std::size_t asked = bytes;
  if (bytes > bytes_ || align > bytes_) bytes = bytes_ + 1;  // refused below, with a sentence
  bool is_zero = false;
  void* p = take(aligned ? bytes + align : bytes, asked, is_zero);
  if (p == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  if (aligned) {
    const auto begin = reinterpret_cast<std::uint64_t>(p);
    const std::uint64_t at = up(begin, align);
    if (at != begin) {
      const block_head own = *(static_cast<block_head*>(p) - 1);
      p = reinterpret_cast<void*>(at);
      *(static_cast<block_head*>(p) - 1) = own;
    }
  }
  if (zeroed && !is_zero) std::memset(p, 0, bytes);
  return p;
}

const private_heap::block_head& private_heap::head_of(const void* block) {
  const auto* head = static_cast<const block_head*>(block) - 1;
  if (reinterpret_cast<std::uint64_t>(block) % sizeof(block_head) != 0 || !head->is_whole())
    die("free() or realloc() of %p, where no block from malloc() begins, or one that was freed "
        "before",
        block);
  return *head;
}

std::size_t private_heap::bytes_of(const void* block) const {
  const block_head& head = head_of(block);
  return head.begin + size_of_class(head.size_class()) - reinterpret_cast<std::uint64_t>(block);
}

void private_heap::free(void* block) {
  const block_head& head = head_of(block);
  if (rank_of(reinterpret_cast<std::uint64_t>(block)) != rank_) return;
  const std::size_t c = head.size_class();
  const std::size_t size = size_of_class(c);
  auto* begin = reinterpret_cast<free_block*>(head.begin);
  auto* own = reinterpret_cast<block_head*>(begin) - 1;
  own->check = signature | c | std::uint64_t{1} << 31;
  if (block != begin) const_cast<block_head&>(head).check = 0;
  // Large blocks give their pages back, all that lie in them whole, and are zero from then on.
  if (size >= large) {
    const std::uint64_t first = up(head.begin, page);
    const std::uint64_t end = (head.begin + size) / page * page;
    const std::uint64_t at = head.begin;
    std::memset(reinterpret_cast<void*>(at), 0, first - at);
    madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
    std::memset(reinterpret_cast<void*>(end), 0, at + size - end);
  }
  free_block*& list =
      (reinterpret_cast<std::uint64_t>(begin) < sealed_end_ ? sealed_free_ : free_)[c];
  begin->next = list;
  list = begin;
}

private_heap::range private_heap::seal() {
  if (next_ > sealed_end_) {
    next_ = up(next_, page);
    sealed_end_ = next_;
  }
  for (std::size_t c = 0; c < classes; ++c) {
    while (free_[c] != nullptr) {
      free_block* first = free_[c];
      free_[c] = first->next;
      first->next = sealed_free_[c];
      sealed_free_[c] = first;
    }
  }
  return {part_low_, sealed_end_};
}

void private_heap::unseal() {
  sealed_end_ = part_low_;
  for (std::size_t c = 0; c < classes; ++c) {
    while (sealed_free_[c] != nullptr) {
      free_block* first = sealed_free_[c];
      sealed_free_[c] = first->next;
      first->next = free_[c];
      free_[c] = first;
    }
  }
}

void private_heap::open_copy(range r) {
  if (r.high <= r.low) return;
  if (mprotect(reinterpret_cast<void*>(r.low), r.high - r.low, PROT_READ | PROT_WRITE) != 0)
    die("out of memory: a copy of %llu KiB that the creator of a process has from malloc() cannot "
        "be mapped (%s)",
        static_cast<unsigned long long>((r.high - r.low) >> 10), std::strerror(errno));
}

void private_heap::close_copy(range r) {
  if (r.high <= r.low) return;
  madvise(reinterpret_cast<void*>(r.low), r.high - r.low, MADV_DONTNEED);
  mprotect(reinterpret_cast<void*>(r.low), r.high - r.low, PROT_NONE);
}

}  // namespace sojourn::detail
