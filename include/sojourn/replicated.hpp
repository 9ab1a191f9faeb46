// SPDX-License-Identifier: Apache-2.0
// Objects of which every rank that reads them has a version of its own. Reads use the newest
// version that is here, and never wait for one that is on its way; updates make a new version on
// one rank, which spreads in the background.
//
//     auto prices = broadcast(rank_me() == 0 ? make_replicated<table>() : replicated<table>(), 0);
//     long now = prices.read<&table::of>(3);       // no message, once this rank has a version
//     prices.update<&table::set>(3, 250L);         // runs on rank 0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/method.hpp"
#include "sojourn/detail/replicas.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

/// How many versions behind an update readers may be when it returns (replicated::update).
struct versions {
  std::uint64_t behind;
};

/// Names an object that its readers have copies of, each of some version of it. Travels, and is
/// copied freely; all copies name the same object. A default-constructed one names none.
///
/// On each rank, reads never go back to an older version, and see all updates that this rank has
/// made before. Between two ranks nothing is promised but what `refresh` and the bound of an update
/// bring about.
///
/// Errors of calls that suspend: replicated_destroyed; sojourn::error when this names no object;
/// different_program. Source: multi-version memory (Weihl and Wang, 1990).
template <class T>
class replicated {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::is_copy_constructible_v<T>,
                "sojourn: the type of a replicated object must be copyable, and not const");
  static_assert(detail::marshals_to_stay<T>,
                "sojourn: the versions of a replicated object travel, and this type cannot: it "
                "holds a pointer, a reference or a view, or is a class without `serialize`; "
                "sojourn/calls/marshal.hpp lists what can");
  static_assert(alignof(T) <= 64, "sojourn: a replicated object is aligned to at most 64 bytes");

 public:
  using value_type = T;

  replicated() = default;
  explicit replicated(const detail::replica_name& name) : name_(name) {}  ///< For implementers.

  /// Calls a const method on the newest version that this rank has. That version stays as it is
  /// until the method ends, also when it suspends and newer ones come. Costs a comparison and a
  /// plain call. The method's frames stay on this rank.
  /// Suspends: when this rank has no version yet: it subscribes, and waits for one. Errors:
  /// rank_lost when it would have to subscribe, and the writer has ended.
  template <auto Method, class... A>
  [[gnu::always_inline]] inline auto read(A&&... arguments) const ->
      typename detail::method<Method>::result {
    using method = detail::method<Method>;
    static_assert(method::is_const,
                  "sojourn: read<…> takes a const method: a version never changes; update<…> makes "
                  "a new one");
    static_assert(std::is_base_of_v<typename method::object, T>,
                  "sojourn: this is not a method of the replicated object");
    static_assert(!std::is_reference_v<typename method::result>,
                  "sojourn: the result of a read must be a value: what it refers to may be freed "
                  "when the read has ended");
    return read_by_method<Method>(static_cast<typename method::arguments*>(nullptr),
                                  std::forward<A>(arguments)...);
  }
  /// The same of fn(const T&, arguments…). `fn` may capture variables: it runs here.
  template <class F, class... A>
    requires std::is_invocable_v<F, const T&, A...>
  [[gnu::always_inline]] inline auto read(F&& fn, A&&... arguments) const
      -> std::invoke_result_t<F, const T&, A...> {
    static_assert(!std::is_reference_v<std::invoke_result_t<F, const T&, A...>>,
                  "sojourn: the result of a read must be a value: what it refers to may be freed "
                  "when the read has ended");
    return read_by<F&&, A&&...>(std::forward<F>(fn), std::forward<A>(arguments)...);
  }

  /// Calls a method on a copy of the newest version, on the writer's rank, and makes that copy the
  /// next version. Returns the method's result. Updates of an object run one at a time; reads go on
  /// meanwhile. An exception that leaves the method discards the copy, and is thrown here.
  /// Arguments and result are those of rpc. The method must not update the same object.
  /// Suspends: yes, but on the writer's rank only when another update is in progress. Errors:
  /// rank_lost; sojourn::error when the version is longer than 4 MiB as a message; what the method,
  /// T's copy constructor and its `serialize` throw.
  template <auto Method, class... A>
    requires(!(std::is_same_v<std::remove_cvref_t<A>, versions> || ...))
  auto update(A&&... arguments) const -> typename detail::method<Method>::result {
    return update<Method>(versions{unbounded}, std::forward<A>(arguments)...);
  }
  /// The same, and waits until no rank reads a version that is more than `bound.behind` versions
  /// older than the new one: with versions{0}, all reads that begin from now on see this update.
  template <auto Method, class... A>
  auto update(versions bound, A&&... arguments) const -> typename detail::method<Method>::result {
    using parameters = typename detail::checked_method<Method, T, A...>::arguments;
    return update_by_method<Method>(bound, static_cast<parameters*>(nullptr),
                                    std::forward<A>(arguments)...);
  }
  /// The same of fn(T&, arguments…). `fn` is a function or a callable without captures.
  template <class F, class... A>
    requires(detail::is_captureless<F> && std::is_invocable_v<F, T&, A...>)
  auto update(F fn, A... arguments) const {
    return update(versions{unbounded}, fn, std::move(arguments)...);
  }
  template <class F, class... A>
    requires(detail::is_captureless<F> && std::is_invocable_v<F, T&, A...>)
  auto update(versions bound, F fn, A... arguments) const {
    using result = std::invoke_result_t<F, T&, A...>;
    static_assert(detail::is_result<result> && (detail::marshals_to_stay<A> && ...),
                  "sojourn: an argument or the result of this update cannot travel: it holds a "
                  "pointer, a reference or a view; sojourn/calls/marshal.hpp lists what can");
    return update_by<result>(bound, fn, std::move(arguments)...);
  }

  /// Returns when reads here find a version no older than the newest at the time of the call.
  /// Suspends: on ranks other than the writer's. Errors: rank_lost.
  void refresh() const { detail::refresh_replica(name_, detail::replica_type_of<T>); }

  /// Gives up this rank's version: no more are sent here, until a read subscribes anew. Reads that
  /// are in progress keep theirs. Never suspends. Does nothing on the writer's rank, and while a
  /// subscription is on its way.
  void unsubscribe() const { detail::drop_replica(name_); }

  /// The number of the version that reads here find: the first is 1, and each update adds one. 0:
  /// there is none. Never suspends.
  std::uint64_t version() const { return detail::version_here(name_); }

  /// Destroys the object, after the updates that have begun. Reads in progress go on. Later calls
  /// fail with replicated_destroyed; reads of other ranks do so when these have heard of it.
  /// Suspends: yes. Errors: rank_lost.
  void destroy() const {
    const rank_t to = detail::writer_of(name_);
    if (to == rank_me()) return detail::end_replica(name_);
    rpc(to, [](detail::replica_name name) { detail::end_replica(name); }, name_).get();
  }

  /// The rank that has made it.
  rank_t writer() const { return name_.writer(); }

  explicit operator bool() const { return name_ != detail::replica_name(); }
  friend bool operator==(const replicated&, const replicated&) = default;

 private:
  static constexpr std::uint64_t unbounded = ~std::uint64_t{0};

  template <auto Method>
  struct method_read {
    template <class... P>
    [[gnu::always_inline]] auto operator()(const T& version, P&&... arguments) const ->
        typename detail::method<Method>::result {
      return (static_cast<const typename detail::method<Method>::object&>(version).*
              Method)(std::forward<P>(arguments)...);
    }
  };

  /// How an argument for a parameter P goes to read_later: by value if it fits in registers, so
  /// that it need not lie in memory where that is not called.
  template <class P, class A>
  using passed = std::conditional_t<std::is_trivially_copyable_v<P> && sizeof(P) <= 16, P, A&&>;

  template <auto Method, class... P, class... A>
  [[gnu::always_inline]] inline auto read_by_method(std::tuple<P...>*, A&&... arguments) const {
    static_assert(sizeof...(P) == sizeof...(A),
                  "sojourn: this read has too few or too many arguments for the method");
    if constexpr (detail::method<Method>::parameters_travel) {
      return read_by<method_read<Method>, passed<P, A>...>(method_read<Method>(),
                                                           std::forward<A>(arguments)...);
    } else {
      // Some are references to variables, which the method may change.
      return read_by<method_read<Method>, A&&...>(method_read<Method>(),
                                                  std::forward<A>(arguments)...);
    }
  }

  template <class F, class... Passed, class... A>
  [[gnu::always_inline]] inline auto read_by(F fn, A&&... arguments) const {
    const detail::replica_place& place = detail::place_of(name_);
    // A call of its own: so nothing has to be saved where the version is here.
    if (place.number != name_.number) [[unlikely]]
      return read_later<F, Passed...>(name_, std::forward<F>(fn), std::forward<A>(arguments)...);
    return read_version(place.object, std::forward<F>(fn), std::forward<A>(arguments)...);
  }
  template <class F, class... A>
  [[gnu::noinline]] static auto read_later(detail::replica_name name, F fn, A... arguments) {
    return read_version(detail::find_replica(name, detail::replica_type_of<T>), std::forward<F>(fn),
                        std::forward<A>(arguments)...);
  }
  template <class F, class... A>
  [[gnu::always_inline]] static inline auto read_version(const void* object, F&& fn,
                                                         A&&... arguments) {
    detail::keep_address(object);
    const detail::use_of_version use(object);
    return std::invoke(std::forward<F>(fn), *static_cast<const T*>(object),
                       std::forward<A>(arguments)...);
  }

  /// What an update returns: the number of its version, and its result.
  template <class R>
  using answer = std::conditional_t<std::is_void_v<R>, std::uint64_t, std::pair<std::uint64_t, R>>;

  template <auto Method>
  struct method_call {
    template <class... P>
    auto operator()(T& next, P&&... arguments) const -> typename detail::method<Method>::result {
      return (static_cast<typename detail::method<Method>::object&>(next).*
              Method)(std::forward<P>(arguments)...);
    }
  };
  /// An argument that may be read when its message has gone: the update may wait for its turn.
  template <class P, class B>
  static auto owned(B&& b) {
    if constexpr (detail::is_view<P>) {
      return detail::outlive<P>(std::forward<B>(b));
    } else {
      return P(std::forward<B>(b));
    }
  }

  template <auto Method, class... P, class... A>
  auto update_by_method(versions bound, std::tuple<P...>*, A&&... arguments) const {
    static_assert(!detail::method<Method>::is_const,
                  "sojourn: update<…> takes a method that changes the object; read<…> takes a "
                  "const one");
    static_assert(
        (!detail::is_a<P, view> && ...),
        "sojourn: a method that takes a sojourn::view cannot be an update, which may have "
        "to wait for its turn: take a std::span or a value");
    return update_by<typename detail::method<Method>::result>(
        bound, method_call<Method>(), owned<P>(std::forward<A>(arguments))...);
  }

  /// On the writer's rank.
  template <class R, class F, class... A>
  static answer<R> change(const detail::replica_name& name, std::uint64_t behind, F& fn, A&... a) {
    detail::replica_update update(name, detail::replica_type_of<T>);
    T& next = *static_cast<T*>(update.next());
    if constexpr (std::is_void_v<R>) {
      std::invoke(fn, next, std::move(a)...);
      return update.publish(behind);
    } else {
      R result = std::invoke(fn, next, std::move(a)...);
      const std::uint64_t number = update.publish(behind);
      return {number, std::move(result)};
    }
  }

  template <class R, class F, class... A>
  R update_by(versions bound, F fn, A... arguments) const {
    const rank_t to = detail::writer_of(name_);
    if (to == rank_me()) return result_of<R>(change<R>(name_, bound.behind, fn, arguments...));
    answer<R> made =
        rpc(
            to,
            [](detail::replica_name name, std::uint64_t behind,
               detail::travelling_callable<F> called, A... a) {
              F fn_there = called.get();
              return change<R>(name, behind, fn_there, a...);
            },
            name_, bound.behind, detail::travelling_callable<F>(fn), std::move(arguments)...)
            .get();
    std::uint64_t number;
    if constexpr (std::is_void_v<R>)
      number = made;
    else
      number = made.first;
    detail::see_version(name_, detail::replica_type_of<T>, number);
    return result_of<R>(std::move(made));
  }
  template <class R>
  static R result_of(answer<R>&& made) {
    if constexpr (!std::is_void_v<R>) return std::move(made.second);
  }

  detail::replica_name name_;
};

/// A replicated object whose first version is T(arguments…), and whose writer is this rank. It
/// lives until destroy(), or the end of the job. A rank can have 65,535 of them at a time.
/// Suspends: no. Errors: sojourn::error; what the constructor and `serialize` throw.
template <class T, class... A>
  requires std::is_constructible_v<T, A...>
replicated<T> make_replicated(A&&... arguments) {
  auto init = [&](void* memory) { ::new (memory) T(std::forward<A>(arguments)...); };
  return replicated<T>(detail::make_replica(
      detail::replica_type_of<T>,
      [](void* memory, void* context) { (*static_cast<decltype(init)*>(context))(memory); },
      &init));
}

}  // namespace sojourn
