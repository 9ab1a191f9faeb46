// SPDX-License-Identifier: Apache-2.0
// One object on each rank; the objects find each other without a message, by the order in which
// they are made, or by a name. A call of the object of a rank that has not made it yet waits on
// that rank.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/method.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/future.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

/// Tells a dist_object its name. The text is copied.
struct dist_name {
  std::string_view text;
};

namespace detail {

/// Which dist_object: the number-th that a rank makes under a name, from 1 on. 0 stands for none.
struct dist_key {
  std::uint64_t name = 0;  ///< A hash of the name; 0: no name.
  std::uint64_t number = 0;
  friend constexpr auto operator<=>(const dist_key&, const dist_key&) = default;
};

/// Tells types apart, on this rank, by its address.
template <class T>
inline constexpr char dist_type = 0;

/// Returns `name`. Errors: sojourn::error when it is empty.
std::string_view checked_name(std::string_view name);
/// The key of the next dist_object of this rank with that name; "": without a name. Errors:
/// sojourn::error when this rank uses another name with the same hash.
dist_key begin_dist_object(std::string_view name);
/// The object of this key is made: calls find it from now on.
void publish_dist_object(const dist_key& key, void* object, const void* type);
/// Calls find the object of this key no longer. `object`: null when it was not published. Suspends
/// until no call runs in the object.
void end_dist_object(const dist_key& key, const void* object) noexcept;
/// Suspends until this rank's object of that key is made.
void* find_dist_object(const dist_key& key, const void* type);
bool dist_object_is_here(const dist_key& key);

/// Lives while a call runs in the object of that key. The frames of the call stay on this rank.
class dist_use {
 public:
  dist_use(const dist_key& key, const void* type);
  ~dist_use();
  dist_use(const dist_use&) = delete;
  dist_use& operator=(const dist_use&) = delete;
  void* object() const { return object_; }

 private:
  stays_here stays_;
  dist_key key_;
  void* object_;
};

/// Holds a key from before the object is made until it is no longer found.
class dist_registration {
 public:
  explicit dist_registration(std::string_view name) : key_(begin_dist_object(name)) {}
  ~dist_registration() { end(); }
  dist_registration(const dist_registration&) = delete;
  dist_registration& operator=(const dist_registration&) = delete;
  const dist_key& key() const { return key_; }
  void publish(void* object, const void* type) {
    publish_dist_object(key_, object, type);
    object_ = object;
  }
  void end() noexcept {
    if (key_ != dist_key()) end_dist_object(std::exchange(key_, {}), object_);
  }

 private:
  dist_key key_;
  void* object_ = nullptr;
};

}  // namespace detail

/// Names the dist_object<T>s that belong together. It travels: a function that gets one as an
/// argument finds its own rank's object.
template <class T>
class dist_id {
 public:
  /// Names no dist_object.
  dist_id() = default;

  /// This rank's object; suspends until it is made. The reference is good until the object is
  /// destroyed, on this rank only. Requires: a fiber. Errors: dist_object_destroyed; sojourn::error
  /// when this rank's object is of another type, or this names none.
  T& here() const {
    return *static_cast<T*>(detail::find_dist_object(key_, &detail::dist_type<T>));
  }
  /// True when this rank's object is made and not destroyed. Never suspends.
  bool is_here() const { return detail::dist_object_is_here(key_); }

  friend constexpr auto operator<=>(const dist_id&, const dist_id&) = default;

  explicit dist_id(const detail::dist_key& key) : key_(key) {}  ///< For implementers.
  const detail::dist_key& key() const { return key_; }          ///< For implementers.

 private:
  detail::dist_key key_;
};

/// The object of one rank among those of a dist_id, for calls. Each call runs on that rank once its
/// object is made; it may suspend, and stays on that rank. Arguments and results are those of rpc.
/// Errors of a call: dist_object_destroyed; rank_lost; sojourn::error when that rank's object is of
/// another type; what the function throws.
template <class T>
class dist_place {
 public:
  dist_place(dist_id<T> id, rank_t rank) : id_(id), rank_(rank) {}

  rank_t rank() const { return rank_; }

  /// Starts a call of the method, and returns the future of its result. The methods of a monitor
  /// run one at a time (monitor.hpp). Suspends: only when the way to the rank is full.
  template <auto Method, class... A>
  auto async(A&&... arguments) const {
    static_assert(!detail::begins_with_access<A...>,
                  "sojourn: a call of a dist_object's method takes no word (via::…), because it "
                  "stays on the object's rank; the objects of a sharded<T> take all of them");
    using parameters = typename detail::checked_method<Method, T, A...>::arguments;
    return start<Method>(parameters(std::forward<A>(arguments)...));
  }
  /// The same of fn(object, arguments…). `fn` is a function or a callable without captures that
  /// takes a T& first.
  template <class F, class... A>
  auto async(F fn, A... arguments) const {
    static_assert(detail::is_captureless<F>,
                  "sojourn: a function called on another rank cannot capture variables: pass them "
                  "as arguments");
    return rpc(
        rank_,
        [](dist_id<T> id, detail::travelling_callable<F> called, A... a) {
          const detail::dist_use use(id.key(), &detail::dist_type<T>);
          return called.get()(*static_cast<T*>(use.object()), std::move(a)...);
        },
        id_, detail::travelling_callable<F>(fn), std::move(arguments)...);
  }

  /// async, and waits for the result. Suspends.
  template <auto Method, class... A>
  auto call(A&&... arguments) const {
    return async<Method>(std::forward<A>(arguments)...).get();
  }
  template <class F, class... A>
  auto call(F fn, A... arguments) const {
    return async(fn, std::move(arguments)...).get();
  }

  /// The future of a copy of the object.
  future<T> fetch() const {
    return async([](const T& object) { return object; });
  }

 private:
  template <auto Method, class... P>
  auto start(std::tuple<P...> arguments) const {
    using method = detail::method<Method>;
    using result = typename method::result;
    const auto handler = [](dist_id<T> id, P... a) -> result {
      const detail::dist_use use(id.key(), &detail::dist_type<T>);
      std::tuple<P...> given(std::move(a)...);
      return detail::call_method<Method, T, typename method::object, result>(
          static_cast<T*>(use.object()), given);
    };
    return std::apply(
        [this, handler](P&... each) { return rpc(rank_, handler, id_, std::move(each)...); },
        arguments);
  }

  dist_id<T> id_;
  rank_t rank_;
};

/// A T of this rank that belongs together with those of the other ranks: the k-th dist_object that
/// a rank makes without a name with the k-th of every other rank, and the k-th of a name with the
/// k-th of that name. Making one sends nothing and waits for nobody. So each rank makes those
/// without a name in the same order; a dist_object that some ranks do not make, or that fibers make
/// in an order that depends on time, needs a name. It lies in the memory of its rank: in main's
/// frames, on a heap, in another object; not in frames that migrate. Neither copied nor moved.
/// Requires: a fiber makes it, inside run().
///
/// Destroying it suspends until the calls that run in it have ended, so no such call may destroy
/// it, or wait for a fiber that does. Calls that come later fail with dist_object_destroyed. To
/// avoid such calls, ranks that use each other's objects meet, in a barrier for example, before
/// they destroy them. Errors: a dist_object that is destroyed on another rank than it was made on
/// ends the job. Source: UPC++'s dist_object.
template <class T>
class dist_object {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>,
                "sojourn: the type of a dist_object must not be const");

 public:
  using value_type = T;

  /// Makes the T of these arguments. If its constructor throws, other ranks find no object here, as
  /// if it had been destroyed. Suspends: only if that constructor does. Errors: what it
  /// throws; sojourn::error outside of run().
  template <class... A>
    requires(std::is_constructible_v<T, A...>)
  explicit dist_object(A&&... arguments)
      : registration_(std::string_view()), value_(std::forward<A>(arguments)...) {
    registration_.publish(&value_, &detail::dist_type<T>);
  }
  /// The same under a name. Errors: also sojourn::error when this rank uses another name with the
  /// same hash, or the name is empty.
  template <class... A>
    requires(std::is_constructible_v<T, A...>)
  explicit dist_object(dist_name name, A&&... arguments)
      : registration_(detail::checked_name(name.text)), value_(std::forward<A>(arguments)...) {
    registration_.publish(&value_, &detail::dist_type<T>);
  }
  ~dist_object() { registration_.end(); }
  dist_object(const dist_object&) = delete;
  dist_object& operator=(const dist_object&) = delete;

  /// This rank's object.
  T& here() { return value_; }
  const T& here() const { return value_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

  dist_id<T> id() const { return dist_id<T>(registration_.key()); }
  /// The object of a rank, which may be this one.
  dist_place<T> on(rank_t rank) const { return {id(), rank}; }
  /// The future of a copy of that rank's object, once it is made. Errors of get(): those of a call.
  future<T> fetch(rank_t rank) const { return on(rank).fetch(); }

 private:
  detail::dist_registration registration_;
  T value_;
};
template <class T>
dist_object(T) -> dist_object<T>;
template <class T>
dist_object(dist_name, T) -> dist_object<T>;

}  // namespace sojourn

template <class T>
struct std::hash<sojourn::dist_id<T>> {
  std::size_t operator()(const sojourn::dist_id<T>& id) const {
    return std::hash<std::uint64_t>()(id.key().name ^ id.key().number * 0x9e3779b97f4a7c15);
  }
};
