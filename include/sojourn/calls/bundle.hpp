// SPDX-License-Identifier: Apache-2.0
// One-way calls of one method at the cost of a store each, for loops that make little else.
#pragma once

#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "sojourn/calls/aggregate.hpp"
#include "sojourn/calls/batch.hpp"
#include "sojourn/detail/method.hpp"
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

[[noreturn]] void refuse_bundle_in_other_finish();

}  // namespace detail

/// Gathers one-way calls of a method that takes a batch (batch.hpp), of the objects of a sharded:
///
///     finish_all([&] {
///       bundle<&part::add> adds(parts);
///       for (std::uint64_t key : keys) adds.to(owner_of(key), key);
///     });
///
/// is what parts.on(owner_of(key)).ff<&part::add>(key) in the loop would be, but to() takes eight
/// instructions. What it has gathered for a rank, up to 512 bytes, it hands to the runtime when
/// that is full, at flush(), and when it ends; so those calls have no order with others of this
/// rank. Such an object belongs to the fiber that made it, which stays on its rank, and to the
/// finish in which it was made.
template <auto Method, class T = typename detail::batch_method<decltype(Method)>::object>
class bundle {
  static_assert(detail::takes_batch<decltype(Method)>,
                "sojourn: a bundle is for a method that takes a batch<Item>, and nothing else");
  using item = typename detail::batch_method<decltype(Method)>::item;
  static constexpr std::size_t stride = batch<item>::stride;

 public:
  /// Suspends: on a rank that is none of those that made the objects, once. Errors: as
  /// sharded::on.
  explicit bundle(const sharded<T>& objects)
      : objects_(objects),
        scope_(finish_scope::innermost()),
        lanes_(new lane[static_cast<std::size_t>(sojourn::rank_count())]),
        room_(static_cast<std::byte*>(::operator new(lane_bytes * rooms(), alignment))) {
    for (rank_t i = 0; i < objects.rank_count(); ++i) {
      const rank_t to = objects.rank_of(i);
      std::byte* const first = room_ + lane_bytes * static_cast<std::size_t>(i);
      lanes_[static_cast<std::size_t>(to)] = {first, first + in_a_lane * stride};
    }
  }
  /// Hands over what is left. Suspends, and throws: as flush(). (While another exception is on its
  /// way, it drops its own.)
  ~bundle() noexcept(false) {
    const room_guard last{room_};
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

  /// Calls the method of rank `to`'s object. Requires: that rank is one of those that made the
  /// objects. Suspends: when what was gathered for that rank is full, and so is the way there.
  [[gnu::always_inline]] inline void to(rank_t to, const item& what) {
    lane& l = lanes_[static_cast<std::size_t>(to)];
    std::byte* const at = l.next;
    ::new (static_cast<void*>(at)) item(what);
    l.next = at + stride;
    if (l.next == l.end) [[unlikely]]
      hand_over(to);
  }
  /// Hands all that was gathered to the runtime. Suspends: when the way to a rank is full. Errors:
  /// rank_lost.
  void flush() {
    for (rank_t i = 0; i < objects_.rank_count(); ++i) hand_over(objects_.rank_of(i));
  }

 private:
  static constexpr std::size_t in_a_lane = stride < 512 ? 512 / stride : 1;
  static constexpr std::size_t lane_bytes = in_a_lane * stride;
  static constexpr std::align_val_t alignment{alignof(item) > 8 ? alignof(item) : 8};
  static_assert(alignof(item) <= 8, "sojourn: the items of a bundle are aligned to at most 8 bytes");

  /// What was gathered for a rank. Its last place is filled just before it is handed over.
  struct lane {
    std::byte* next = nullptr;
    std::byte* end = nullptr;
  };
  struct room_guard {
    std::byte* room;
    ~room_guard() { ::operator delete(room, alignment); }
  };
  std::size_t rooms() const { return static_cast<std::size_t>(objects_.rank_count()); }

  [[gnu::noinline]] void hand_over(rank_t to) {
    if (finish_scope::innermost() != scope_) detail::refuse_bundle_in_other_finish();
    lane& l = lanes_[static_cast<std::size_t>(to)];
    // A copy: while the call below waits, other fibers may use this bundle, although none should.
    alignas(8) std::byte gathered[lane_bytes];
    const auto bytes = static_cast<std::size_t>(l.next - (l.end - lane_bytes));
    l.next -= bytes;
    std::memcpy(gathered, l.next, bytes);
    detail::checked_method<Method, T, item>::one_way_each(objects_.on(to).address(), gathered,
                                                          bytes / stride);
  }

  const detail::stays_here stays_;
  const sharded<T> objects_;
  const finish_scope scope_;
  const std::unique_ptr<lane[]> lanes_;
  std::byte* const room_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace sojourn
