// SPDX-License-Identifier: Apache-2.0
// Shared memory over processes: plain pointers to memory that looks the same on all ranks, loaded
// from and stored to with plain loads and stores, and kept consistent page by page
// (docs/shared_memory.md).
//
// A program without data races sees sequentially consistent memory. What orders: locks, barriers,
// and the begin and the end of start(). Neighbouring bytes may be stored to by different ranks at
// the same time.
// Source: Thitikamol and Keleher, Per-Node Multi-Threading and Remote Latency (CVM).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::shared {

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

/// How many bytes of a protocol can be allocated on each rank.
std::size_t capacity();

/// Zeroed shared memory, at an address that is valid on all ranks. Blocks of 4 KiB and more begin
/// on a page and have it for themselves; smaller ones begin on a line of 64 bytes and share their
/// page. A page lies at first where it was allocated, and goes to the rank that first stores to it.
/// `align` is a power of two. May suspend. Errors: std::bad_alloc when the part of the region from
/// which this rank allocates is full.
void* allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t),
               protocol how = protocol::usual);
/// Gives it back, on whatever rank it was allocated. Null is allowed. Nobody accesses it any more.
/// Suspends: when it was allocated on another rank, and the way there is full. Errors: what was
/// never allocated ends the rank that owns the address.
void free(void* p);

/// Shared memory for `count` objects of a type whose zeros are a value.
template <class T>
T* alloc(std::size_t count = 1, protocol how = protocol::usual) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "sojourn: shared::alloc makes objects whose bytes are zero, without running "
                "constructors: use shared::vector or placement new for other types");
  if (count > std::size_t{1} << 47) throw std::bad_alloc();
  return static_cast<T*>(allocate(count * sizeof(T), alignof(T), how));
}

/// For std containers whose elements lie in shared memory. The container itself lies where it is
/// put: in shared memory, or in that of one rank.
template <class T>
struct allocator {
  using value_type = T;
  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) {}
  T* allocate(std::size_t count) {
    if (count > std::size_t{1} << 47) throw std::bad_alloc();
    return static_cast<T*>(shared::allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t) { shared::free(p); }
  friend bool operator==(allocator, allocator) { return true; }
};
template <class T>
using vector = std::vector<T, allocator<T>>;

/// Mutual exclusion among all fibers of the job. It holds nothing: what names the lock is its
/// address, which must be the same on all ranks. So it lies in shared memory, or is a global
/// variable. Taking it again on the rank that had it last sends nothing. A fiber unlocks it on the
/// rank where it has locked it.
class mutex {
 public:
  mutex() = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Suspends while another fiber of the job holds it. What was stored before its last unlock() can
  /// be loaded from then on. Fibers of this rank that wait come before those of other ranks.
  void lock();
  /// Locks it if it is free and was last held on this rank. Never suspends.
  bool try_lock();
  /// Never suspends. Errors: sojourn::error when no fiber of this rank holds it.
  void unlock();

 private:
  [[maybe_unused]] char place_ = 0;
};

/// Returns when all threads of start() have called it, or, outside of start(), the main fibers of
/// all ranks. What any of them stored before can be loaded afterwards. Suspends.
void barrier();

/// The number of the running thread of start(), and how many there are. Threads with neighbouring
/// numbers share a rank. Outside of start(): the rank, and the number of ranks.
int thread();
int threads();

namespace detail {
void begin_threads(int of_this_rank);
void end_threads();
void thread_begins(int number);
void thread_ends();
}  // namespace detail

/// Runs fn(number) in `threads_of_rank` threads of this rank; all ranks call it together, from
/// their main fibers, with the same number. While a thread waits for a page, a lock or a barrier,
/// others of its rank run. Threads stay on their rank. What was stored before it can be loaded in
/// the threads, and what they stored afterwards. Suspends until all threads of all ranks have
/// ended. Errors: rethrows what leaves `fn`; sojourn::error when the number is not positive, or
/// when it is called in a thread of start().
template <class F>
void start(int threads_of_rank, F&& fn) {
  using callable = std::remove_reference_t<F>;
  detail::begin_threads(threads_of_rank);
  std::vector<sojourn::thread> all;
  const auto body = reinterpret_cast<std::uintptr_t>(std::addressof(fn));
  for (int k = 0; k < threads_of_rank; ++k) {
    all.push_back(spawn(
        thread_options{.pinned = true},
        [](std::uintptr_t called, int number) {
          detail::thread_begins(number);
          std::exception_ptr thrown;
          try {
            barrier();
            (*reinterpret_cast<callable*>(called))(number);
          } catch (...) {
            thrown = std::current_exception();
          }
          // Even after an exception: the others wait for this thread.
          barrier();
          detail::thread_ends();
          if (thrown != nullptr) std::rethrow_exception(thrown);
        },
        body, rank_me() * threads_of_rank + k));
  }
  std::exception_ptr failure;
  for (sojourn::thread t : all) {
    try {
      t.join();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  detail::end_threads();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace sojourn::shared
