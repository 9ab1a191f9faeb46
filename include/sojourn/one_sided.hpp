// SPDX-License-Identifier: Apache-2.0
// One-sided access to any rank's heap: atomic words, and copies that begin now and are waited for
// later (split-phase). Where ranks share their heaps these are plain loads and stores. objects.hpp
// has copies that are complete on return.
//
// Stores to an array of another rank while this one computes (docs/examples/one_sided.cpp):
//
//     auto there = make_array<double>(other, 1000);
//     std::vector<double> values(1000, 0.5);
//
//     completions done;
//     put(std::span<double>(values), there, done);
//     // … whatever needs neither `there` nor changes `values` …
//     done.wait();
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "sojourn/objects.hpp"

namespace sojourn {

// ---- Atomic words -------------------------------------------------------------------------------

/// A word in some rank's heap that several ranks read and change: other ranks by atomic_load and
/// the functions below, its owner also by these methods. T is as long as an integer, float or
/// double. The methods never suspend. All operations on a word have one order
/// (std::memory_order_seq_cst).
template <class T>
class global_atomic {
  static_assert(std::is_trivially_copyable_v<T> && std::atomic<T>::is_always_lock_free,
                "sojourn: a global_atomic holds an integer, a floating point number or a "
                "global_ptr");

 public:
  using value_type = T;

  global_atomic() = default;
  explicit global_atomic(T value) : value_(value) {}

  T load() const { return word().load(); }
  void store(T value) { word().store(value); }
  T exchange(T value) { return word().exchange(value); }
  /// Stores `desired` if the word holds `expected`. Returns the value before.
  T compare_exchange(T expected, T desired) {
    word().compare_exchange_strong(expected, desired);
    return expected;
  }
  /// Each returns the value before.
  T fetch_add(T value) { return word().fetch_add(value); }
  T fetch_sub(T value) { return word().fetch_sub(value); }
  T fetch_and(T value) { return word().fetch_and(value); }
  T fetch_or(T value) { return word().fetch_or(value); }
  T fetch_xor(T value) { return word().fetch_xor(value); }
  T fetch_min(T value) {
    return change([value](T was) { return value < was ? value : was; });
  }
  T fetch_max(T value) {
    return change([value](T was) { return was < value ? value : was; });
  }

 private:
  std::atomic_ref<T> word() const { return std::atomic_ref<T>(value_); }
  template <class Change>
  T change(Change to) {
    T was = load();
    while (!word().compare_exchange_weak(was, to(was))) {
    }
    return was;
  }

  alignas(sizeof(T)) mutable T value_{};
};

// ---- Split-phase --------------------------------------------------------------------------------

namespace detail {

/// What one `completions` waits for.
struct split_operations;

void split_get(split_operations*& in, std::uint64_t from, void* to, std::size_t bytes);
void split_put(split_operations*& in, const void* from, std::uint64_t to, std::size_t bytes);
/// Notes that a call without a reply was sent to `rank`.
void split_call(split_operations*& in, rank_t rank);
void split_wait(split_operations* in);
void split_end(split_operations* in) noexcept;

}  // namespace detail

/// Counts the split-phase operations of a fiber. An operation that is given a `completions` has
/// begun when it returns, and is complete when wait() has returned. Until then the program must not
/// read the memory that the operation writes, nor change the memory that it reads. The fiber stays
/// on its rank while the object lives. A fiber may have several at a time. An object that is used
/// again allocates no memory.
/// Source: Split-C's split-phase assignment and sync(), the one-sided side of MRPC's comparisons.
class completions {
 public:
  completions() = default;
  /// Waits as wait() does, so it may suspend; drops the error that wait() would have thrown.
  ~completions() {
    if (operations_ != nullptr) detail::split_end(operations_);
  }
  completions(const completions&) = delete;
  completions& operator=(const completions&) = delete;

  /// Suspends until all operations are complete: what they read is here, what they write is there.
  /// The object may then be used again. Errors: sojourn::error when an address was in no heap.
  void wait() {
    if (operations_ != nullptr) detail::split_wait(operations_);
  }

  detail::split_operations*& operations() { return operations_; }  ///< For implementers.

 private:
  detail::stays_here stays_;
  detail::split_operations* operations_ = nullptr;
};

/// Begins a get: copies elements of any rank's heap to `to`. Suspends: only when the way to the
/// owner is full, or for long copies.
template <class T>
void get(global_ptr<const T> from, std::span<T> to, completions& done) {
  static_assert(travels<T>, "sojourn: the elements of a get must travel");
  detail::before_copy(from, to.size());
  detail::split_get(done.operations(), from.address(), to.data(), to.size_bytes());
}
template <class T>
void get(global_ptr<T> from, std::span<T> to, completions& done) {
  get(global_ptr<const T>(from), to, done);
}
/// Begins a put. Suspends: as get.
template <class T>
void put(std::span<const T> from, global_ptr<T> to, completions& done) {
  static_assert(travels<T>, "sojourn: the elements of a put must travel");
  detail::before_copy(to, from.size());
  detail::check_leaving(detail::leaves_as::copy, to.home(), from.data(), from.size());
  detail::split_put(done.operations(), from.data(), to.address(), from.size_bytes());
}
template <class T>
void put(std::span<T> from, global_ptr<T> to, completions& done) {
  put(std::span<const T>(from), to, done);
}
/// Begins the copy of one element to `to`. Suspends: as get.
template <class T>
void load(global_ptr<T> from, std::remove_const_t<T>& to, completions& done) {
  if (detail::in_reach(from.address(), sizeof(T))) [[likely]] {
    to = load(from);
    return;
  }
  get(global_ptr<const std::remove_const_t<T>>(from), std::span<std::remove_const_t<T>>(&to, 1),
      done);
}
/// Begins the copy of `value`, which is read before this returns. Suspends: as get.
template <class T>
void store(global_ptr<T> to, const std::type_identity_t<T>& value, completions& done) {
  if (detail::in_reach(to.address(), sizeof(T))) [[likely]]
    return store(to, value);
  put(std::span<const T>(&value, 1), to, done);
}

/// get, put, load and store that return a future. Requires: the memory of this rank that get_async
/// and put_async name lives until the future is ready. Suspends: only load_async and store_async,
/// when the way to the owner is full.
template <class T>
future<void> get_async(global_ptr<const T> from, std::span<T> to) {
  if (detail::in_reach(from.address(), to.size_bytes())) {
    get(from, to);
    return future<void>::of_value();
  }
  return future<void>::of_value().then([from, to] { get(from, to); });
}
template <class T>
future<void> get_async(global_ptr<T> from, std::span<T> to) {
  return get_async(global_ptr<const T>(from), to);
}
template <class T>
future<void> put_async(std::span<const T> from, global_ptr<T> to) {
  if (detail::in_reach(to.address(), from.size_bytes())) {
    put(from, to);
    return future<void>::of_value();
  }
  return future<void>::of_value().then([from, to] { put(from, to); });
}
template <class T>
future<void> put_async(std::span<T> from, global_ptr<T> to) {
  return put_async(std::span<const T>(from), to);
}
template <class T>
future<std::remove_const_t<T>> load_async(global_ptr<T> from) {
  using value = std::remove_const_t<T>;
  if (detail::in_reach(from.address(), sizeof(T))) return future<value>::of_value(load(from));
  return rpc(
      detail::owner_of_bytes(from.address(), sizeof(T)),
      [](global_ptr<const value> p) { return *detail::object_here(p.local()); },
      global_ptr<const value>(from));
}

/// `value` is read before this returns.
template <class T>
future<void> store_async(global_ptr<T> to, const std::type_identity_t<T>& value) {
  if (detail::in_reach(to.address(), sizeof(T))) {
    store(to, value);
    return future<void>::of_value();
  }
  static_assert(travels<T>, "sojourn: what is stored must travel");
  return rpc(
      detail::owner_of_bytes(to.address(), sizeof(T)),
      [](global_ptr<T> p, T v) {
        std::memcpy(static_cast<void*>(detail::object_here(p.local())), &v, sizeof(T));
      },
      to, value);
}

// ---- Atomic words of any rank -------------------------------------------------------------------

namespace detail {

/// Runs Operation on the word at its owner.
template <class Operation, class T, class... A>
auto on_far_word(global_ptr<global_atomic<T>> p, A... operands) {
  return rpc(
      owner_of_bytes(p.address(), sizeof(T)),
      [](global_ptr<global_atomic<T>> q, A... a) {
        return Operation()(*object_here(q.local()), a...);
      },
      p, operands...);
}
/// The same, here or at its owner.
template <class Operation, class T, class... A>
auto on_word(global_ptr<global_atomic<T>> p, A... operands) {
  before_copy(p, 1);
  if (in_reach(p.address(), sizeof(T))) [[likely]]
    return Operation()(*p.local(), operands...);
  return on_far_word<Operation>(p, operands...).get();
}
/// The same, but returns the future of the result.
template <class Operation, class T, class... A>
auto on_word_async(global_ptr<global_atomic<T>> p, A... operands) {
  using result = decltype(Operation()(*p.local(), operands...));
  before_copy(p, 1);
  if (!in_reach(p.address(), sizeof(T))) return on_far_word<Operation>(p, operands...);
  if constexpr (std::is_void_v<result>) {
    Operation()(*p.local(), operands...);
    return future<void>::of_value();
  } else {
    return future<result>::of_value(Operation()(*p.local(), operands...));
  }
}
/// The same, but `done` waits for it, and its result is dropped.
template <class Operation, class T, class... A>
void on_word_split(completions& done, global_ptr<global_atomic<T>> p, A... operands) {
  before_copy(p, 1);
  if (in_reach(p.address(), sizeof(T))) [[likely]] {
    (void)Operation()(*p.local(), operands...);
    return;
  }
  const rank_t owner = owner_of_bytes(p.address(), sizeof(T));
  split_call(done.operations(), owner);
  rpc_ff(owner, nonblocking([](global_ptr<global_atomic<T>> q, A... a) {
           (void)Operation()(*object_here(q.local()), a...);
         }),
         p, operands...);
}

struct word_load {
  auto operator()(auto& w) const { return w.load(); }
};
struct word_store {
  // Returns nothing, so that a call with a reply need not send the value back either.
  void operator()(auto& w, auto v) const { w.store(v); }
};
struct word_exchange {
  auto operator()(auto& w, auto v) const { return w.exchange(v); }
};
struct word_compare_exchange {
  auto operator()(auto& w, auto e, auto d) const { return w.compare_exchange(e, d); }
};
struct word_add {
  auto operator()(auto& w, auto v) const { return w.fetch_add(v); }
};
struct word_sub {
  auto operator()(auto& w, auto v) const { return w.fetch_sub(v); }
};
struct word_and {
  auto operator()(auto& w, auto v) const { return w.fetch_and(v); }
};
struct word_or {
  auto operator()(auto& w, auto v) const { return w.fetch_or(v); }
};
struct word_xor {
  auto operator()(auto& w, auto v) const { return w.fetch_xor(v); }
};
struct word_min {
  auto operator()(auto& w, auto v) const { return w.fetch_min(v); }
};
struct word_max {
  auto operator()(auto& w, auto v) const { return w.fetch_max(v); }
};

}  // namespace detail

/// Operations on a word of any rank; each is one atomic step there: an instruction where the caller
/// can reach the word, a call to its owner otherwise. Suspends: when it is a call. Errors:
/// sojourn::error when the address is in no heap; different_program.
template <class T>
T atomic_load(global_ptr<global_atomic<T>> p) {
  return detail::on_word<detail::word_load>(p);
}
template <class T>
void atomic_store(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value) {
  detail::on_word<detail::word_store>(p, value);
}
template <class T>
T atomic_exchange(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value) {
  return detail::on_word<detail::word_exchange>(p, value);
}
/// Stores `desired` if the word holds `expected`. Returns the value before.
template <class T>
T atomic_compare_exchange(global_ptr<global_atomic<T>> p, std::type_identity_t<T> expected,
                          std::type_identity_t<T> desired) {
  return detail::on_word<detail::word_compare_exchange>(p, expected, desired);
}

/// Begin the same operations: the future of each is ready when it is complete. Those on words of
/// one rank are done in the order in which a fiber of one rank has begun them. Suspend: only when
/// the way to the owner is full. Errors: as above; that of a wrong address may be thrown at once.
template <class T>
future<T> atomic_load_async(global_ptr<global_atomic<T>> p) {
  return detail::on_word_async<detail::word_load>(p);
}
template <class T>
future<void> atomic_store_async(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value) {
  return detail::on_word_async<detail::word_store>(p, value);
}
template <class T>
future<T> atomic_exchange_async(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value) {
  return detail::on_word_async<detail::word_exchange>(p, value);
}
template <class T>
future<T> atomic_compare_exchange_async(global_ptr<global_atomic<T>> p,
                                        std::type_identity_t<T> expected,
                                        std::type_identity_t<T> desired) {
  return detail::on_word_async<detail::word_compare_exchange>(p, expected, desired);
}

/// atomic_fetch_NAME returns the value before, atomic_fetch_NAME_async its future; atomic_NAME
/// begins the same operation, which is complete when `done` is.
#define SOJOURN_ATOMIC(NAME)                                                             \
  template <class T>                                                                     \
  T atomic_fetch_##NAME(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value) { \
    return detail::on_word<detail::word_##NAME>(p, value);                               \
  }                                                                                      \
  template <class T>                                                                     \
  future<T> atomic_fetch_##NAME##_async(global_ptr<global_atomic<T>> p,                  \
                                        std::type_identity_t<T> value) {                 \
    return detail::on_word_async<detail::word_##NAME>(p, value);                         \
  }                                                                                      \
  template <class T>                                                                     \
  void atomic_##NAME(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value,      \
                     completions& done) {                                                \
    detail::on_word_split<detail::word_##NAME>(done, p, value);                          \
  }
SOJOURN_ATOMIC(add)
SOJOURN_ATOMIC(sub)
SOJOURN_ATOMIC(and)
SOJOURN_ATOMIC(or)
SOJOURN_ATOMIC(xor)
SOJOURN_ATOMIC(min)
SOJOURN_ATOMIC(max)
#undef SOJOURN_ATOMIC
template <class T>
void atomic_store(global_ptr<global_atomic<T>> p, std::type_identity_t<T> value,
                  completions& done) {
  detail::on_word_split<detail::word_store>(done, p, value);
}

}  // namespace sojourn
