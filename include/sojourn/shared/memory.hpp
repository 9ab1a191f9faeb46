// SPDX-License-Identifier: Apache-2.0
// Allocating memory that all ranks share: the first part of sojourn/shared.hpp.
//
// Threads of all ranks smooth a row of numbers (docs/examples/shared_memory.cpp):
//
//     void relax(std::span<double> from, std::span<double> to, total* change) {
//       const std::size_t all = from.size() - 2;
//       shared::run_threads(2, [=](int thread) {  // two threads on each rank
//         const auto threads = static_cast<std::size_t>(shared::threads());
//         const std::size_t first = 1 + all * static_cast<std::size_t>(thread) / threads;
//         const std::size_t end = 1 + all * static_cast<std::size_t>(thread + 1) / threads;
//         double mine = 0;
//         for (std::size_t i = first; i < end; ++i) {
//           to[i] = (from[i - 1] + from[i + 1]) / 2;  // plain loads and stores
//           mine += to[i] - from[i];
//         }
//         {
//           const std::lock_guard lock(change->mutex);
//           change->sum += mine;
//         }
//         shared::barrier();  // all of `to` can be loaded from here on
//       });
//     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <vector>

#include "sojourn/calls/travels.hpp"

namespace sojourn::shared {

namespace detail {
void check_is_shared(const volatile void* p);
}  // namespace detail

/// How pages are kept consistent.
enum class protocol : std::uint8_t {
  usual,  ///< What SOJOURN_SHARED says, lmw unless it is set.
  /// Lazy, multiple writers: who acquires learns which pages others have changed, and fetches the
  /// changes when it touches them. Several ranks may store to a page at a time.
  lmw,
  /// Lazy, single writer: one rank at a time may store to a page; whole pages travel.
  lsw,
  /// Sequentially consistent, also with data races: a page is stored to on one rank, or loaded on
  /// several.
  seq
};

/// Thrown when there is no room in the part of the region from which this rank allocates; what()
/// says how much of it is left, and what to do.
class exhausted : public std::bad_alloc {
 public:
  explicit exhausted(const char* what) noexcept;
  const char* what() const noexcept override { return what_; }

 private:
  char what_[400];
};

namespace detail {
/// count * each, or the greatest number if the product is greater: no allocation of so many bytes
/// succeeds.
constexpr std::size_t bytes_of(std::size_t count, std::size_t each) {
  return count > ~std::size_t{0} / each ? ~std::size_t{0} : count * each;
}
}  // namespace detail

/// How many bytes of shared memory each rank can allocate under each protocol.
std::size_t capacity();

/// Zeroed shared memory, at an address that is valid on all ranks. Blocks of 4 KiB and more begin
/// on a page and have it for themselves; smaller ones begin on a line of 64 bytes and share their
/// page. A page lies at first where it was allocated, and goes to the rank that first stores to it.
/// `align` is a power of two. May suspend. Errors: exhausted, a std::bad_alloc.
void* allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t),
               protocol how = protocol::usual);
/// Frees what allocate() returned on any rank. Null is allowed. Requires: nobody accesses the
/// memory any more. Suspends: when it was allocated on another rank, and the way there is full.
/// Errors: an address that allocate() has not returned ends the rank that owns it.
void free(void* p);

/// Gives the block in which `p` lies a name for the report (`sojourn run --shared-report`), which
/// names the line that allocated the block in any case. It is enough that one rank calls this. Does
/// nothing if no report is wanted. Never suspends.
void name(const void* p, const char* text);

/// Shared memory for `count` objects of a type whose zeros are a value.
template <class T>
T* alloc(std::size_t count = 1, protocol how = protocol::usual) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "sojourn: shared::alloc makes objects whose bytes are zero, without running "
                "constructors: use shared::vector or placement new for other types");
  return static_cast<T*>(allocate(detail::bytes_of(count, sizeof(T)), alignof(T), how));
}

/// For containers of std::pmr: what they allocate from it lies in shared memory, and any rank may
/// free it. The resource lives for ever. Errors of its allocate(): exhausted.
std::pmr::memory_resource* resource(protocol how = protocol::usual);

/// A pointer to shared memory that travels: as an argument or a result of a call, and in frames
/// that move. (Other pointers mean nothing on other ranks, and are refused there.)
template <class T>
class pointer {
 public:
  constexpr pointer() = default;
  /// Requires: null or an address of shared memory. Errors: sojourn::error.
  pointer(T* p) : p_(p) { detail::check_is_shared(p); }
  template <class U>
    requires std::is_convertible_v<U*, T*>
  pointer(pointer<U> other) : p_(other.get()) {}

  constexpr T* get() const { return p_; }
  constexpr operator T*() const { return p_; }
  constexpr T* operator->() const { return p_; }

 private:
  T* p_ = nullptr;
};

/// For std containers whose elements lie in shared memory. The container itself lies where it is
/// put: in shared memory, or in that of one rank.
template <class T>
struct allocator {
  using value_type = T;
  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(shared::allocate(detail::bytes_of(count, sizeof(T)), alignof(T)));
  }
  void deallocate(T* p, std::size_t) { shared::free(p); }
  friend bool operator==(allocator, allocator) { return true; }
};
template <class T>
using vector = std::vector<T, allocator<T>>;

}  // namespace sojourn::shared

template <class T>
inline constexpr bool sojourn::travels<sojourn::shared::pointer<T>> = true;
