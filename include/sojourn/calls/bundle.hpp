// SPDX-License-Identifier: Apache-2.0
// One-way calls of one method at the cost of a store each, for loops that make little else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "sojourn/calls/aggregate.hpp"
#include "sojourn/calls/batch.hpp"
#include "sojourn/detail/method.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/sharded.hpp"

namespace sojourn {

namespace detail {

template <class Method>
struct batch_method;
template <class C, class R, class Item>
struct batch_method<R (C::*)(batch<Item>)> {
  using object = C;
  using item = Item;
};
template <class C, class R, class Item>
struct batch_method<R (C::*)(batch<Item>) noexcept> : batch_method<R (C::*)(batch<Item>)> {};
template <class C, class R, class Item>
struct batch_method<R (C::*)(batch<Item>) const> : batch_method<R (C::*)(batch<Item>)> {};
template <class C, class R, class Item>
struct batch_method<R (C::*)(batch<Item>) const noexcept> : batch_method<R (C::*)(batch<Item>)> {};

[[noreturn]] void refuse_bundle_in_other_finish();

}  // namespace detail

/// One-way calls of a method that takes a batch (batch.hpp), of the objects of a sharded, which are
/// gathered until flush(), or until there are some thousand bytes of them for a rank (some hundred
/// where there are many ranks, or calls are not bundled). What most programs want is a `bundle`,
/// below. Those that keep this longer than a block of code call flush() before this ends, in the
/// finish that waits for the calls: that in which it was made, or that of begin().
template <auto Method, class T = typename detail::batch_method<decltype(Method)>::object>
class gathered_calls {
  static_assert(detail::takes_batch<decltype(Method)>,
                "sojourn: a bundle is for a method that takes a batch<Item>, and nothing else");
  using item = typename detail::batch_method<decltype(Method)>::item;
  static_assert(alignof(item) <= 8 && sizeof(item) <= 512,
                "sojourn: the items of a bundle take at most 512 bytes, and are aligned to at most "
                "8: call p.ff<&T::method>(item) for others");
  static constexpr std::size_t stride = batch<item>::stride;

 public:
  /// Suspends: on a rank that is none of those that made the objects, once. Errors: as sharded::on.
  explicit gathered_calls(const sharded<T>& objects)
      : objects_(objects),
        lanes_(new lane[static_cast<std::size_t>(sojourn::rank_count())]),
        room_(new std::uint64_t[lane_bytes_ / 8 * static_cast<std::size_t>(objects.rank_count())]) {
    auto* first = reinterpret_cast<std::byte*>(room_.get());
    for (rank_t i = 0; i < objects.rank_count(); ++i, first += lane_bytes_)
      lanes_[static_cast<std::size_t>(objects.rank_of(i))] = {first, first + lane_bytes_};
  }

  /// Calls the method of rank `to`'s object: in eight instructions, unless what was gathered for
  /// that rank is full now. Requires: that rank is one of those that made the objects. Suspends:
  /// as flush().
  [[gnu::always_inline]] inline void to(rank_t to, const item& what) {
    lane& l = lanes_[static_cast<std::size_t>(to)];
    ::new (static_cast<void*>(l.next)) item(what);
    l.next += stride;
    if (l.next == l.end) [[unlikely]]
      hand_over(to);
  }
  /// False when bundles were of another size when this was made: a new one sends better.
  bool fits() const { return lane_bytes_ == bytes_of_a_lane(); }
  /// From now on another finish waits for the calls. Requires: nothing is gathered.
  void begin(finish_scope scope) { scope_ = scope; }
  /// Hands all that was gathered to the runtime, as ff does, in bundles where calls are bundled.
  /// Suspends: when the way to a rank is full. Errors: rank_lost, when the calls for all others
  /// have been handed over; sojourn::error in another finish.
  void flush() {
    std::exception_ptr failure;
    for (rank_t i = 0; i < objects_.rank_count(); ++i) {
      try {
        hand_over(objects_.rank_of(i));
      } catch (const rank_lost&) {
        if (failure == nullptr) failure = std::current_exception();
      }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
  }

 private:
  using method = detail::checked_method<Method, T, item>;
  // So much goes in a message of its own; less is bundled with other calls.
  static constexpr std::size_t alone_from_bytes = 2048;

  /// What was gathered for a rank, and the end of the room for it, which is never reached.
  struct lane {
    std::byte* next = nullptr;
    std::byte* end = nullptr;
  };

  static std::size_t bytes_of_a_lane() {
    return std::max<std::size_t>(detail::bytes_of_a_run() / stride, 1) * stride;
  }

  [[gnu::noinline]] void hand_over(rank_t to) {
    lane& l = lanes_[static_cast<std::size_t>(to)];
    const auto bytes = static_cast<std::size_t>(l.next - (l.end - lane_bytes_));
    if (bytes == 0) return;
    if (finish_scope::innermost() != scope_) [[unlikely]] {
      if (l.next == l.end) l.next -= stride;  // The last call is not made: a lane is never full.
      detail::refuse_bundle_in_other_finish();
    }
    const std::size_t count = bytes / stride;
    l.next -= bytes;  // first, because a lane is never full
    const std::uint64_t object = objects_.on(to).address();
    if (bytes >= alone_from_bytes && method::one_way_now(object, l.next, count)) return;
    // A copy, because the call below may wait, and other fibers gather more meanwhile. It is memory
    // of this rank.
    const detail::stays_here stays;
    std::unique_ptr<std::uint64_t[]> many;
    std::uint64_t few[64];
    if (bytes > sizeof few) many.reset(new std::uint64_t[bytes / sizeof few[0] + 1]);
    auto* const items = reinterpret_cast<std::byte*>(many != nullptr ? many.get() : few);
    std::memcpy(items, l.next, bytes);
    method::one_way_each(object, items, count);
  }

  const sharded<T> objects_;
  /// Of what is gathered for a rank.
  const std::size_t lane_bytes_ = bytes_of_a_lane();
  finish_scope scope_ = finish_scope::innermost();
  const std::unique_ptr<lane[]> lanes_;  ///< Of each rank of the job.
  const std::unique_ptr<std::uint64_t[]> room_;
};

/// Gathers one-way calls in a block of code:
///
///     finish_all([&] {
///       bundle<&part::add> adds(parts);
///       for (std::uint64_t key : keys) adds.to(owner_of(key), key);
///     });
///
/// is what parts.on(owner_of(key)).ff<&part::add>(key) in the loop would be, but to() takes eight
/// instructions, and these calls have no order with others of this rank. The calls are handed over
/// when there are enough of them for a rank, at flush(), and when this ends. It belongs to the
/// fiber that made it, which stays on its rank, and to the finish in which it was made. Errors:
/// sojourn::error when it is used in another finish, as far as that is noticed.
template <auto Method, class T = typename detail::batch_method<decltype(Method)>::object>
class bundle {
  using item = typename detail::batch_method<decltype(Method)>::item;

 public:
  explicit bundle(const sharded<T>& objects) : calls_(objects) {}
  /// Hands over what is left. Suspends, and throws: as flush(). (While another exception is on its
  /// way, it drops its own.)
  ~bundle() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) {
      flush();
      return;
    }
    try {
      flush();
    } catch (...) {
    }
  }
  bundle(const bundle&) = delete;
  bundle& operator=(const bundle&) = delete;

  /// As gathered_calls.
  [[gnu::always_inline]] inline void to(rank_t to, const item& what) { calls_.to(to, what); }
  void flush() { calls_.flush(); }

 private:
  const detail::stays_here stays_;
  gathered_calls<Method, T> calls_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace sojourn
