// SPDX-License-Identifier: Apache-2.0
// The parts of an access `p.call<&T::method>(…)`: the checks that its types can travel, the plain
// call, and what perform() (access.hpp) needs for the others.
#pragma once

#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/batch.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/access.hpp"
#include "sojourn/detail/bundle.hpp"
#include "sojourn/detail/forked.hpp"
#include "sojourn/detail/request.hpp"
#include "sojourn/future.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

template <class... A>
inline constexpr bool begins_with_access = false;
template <class First, class... A>
inline constexpr bool begins_with_access<First, A...> =
    std::is_same_v<std::remove_cvref_t<First>, via> ||
    std::is_same_v<std::remove_cvref_t<First>, access>;

/// A parameter as it travels: `const X&` is bound to a copy at the owner; of a batch, each item
/// travels alone.
template <class P>
struct travels_as {
  using type = P;
};
template <class T>
struct travels_as<batch<T>> {
  using type = T;
};
template <class P>
using travelling_parameter = typename travels_as<std::remove_cvref_t<P>>::type;
template <class P>
inline constexpr bool parameter_travels =
    !std::is_reference_v<P> ||
    (std::is_lvalue_reference_v<P> && std::is_const_v<std::remove_reference_t<P>>);

/// An argument in a form that may be read after the caller has gone on: the elements that a view
/// shows are copied, as they would be in a message.
template <class P, class B>
decltype(auto) outlive(B&& b) {
  if constexpr (is_a<P, std::basic_string_view>) {
    return std::basic_string<typename P::value_type>(P(b));
  } else if constexpr (is_view<P> && !is_a<P, view>) {
    P range(b);
    return std::vector<typename P::value_type>(range.begin(), range.end());
  } else {
    return std::forward<B>(b);
  }
}
template <class P, class B>
using outliving = std::decay_t<decltype(outlive<P>(std::declval<B>()))>;

template <auto Method>
struct method {
  static_assert(std::is_void_v<decltype(Method)>,
                "sojourn: call<…> and async<…> take a pointer to a method, such as &node::find, "
                "that is not volatile and has no & or &&");
};

#define SOJOURN_METHOD(QUALIFIERS, IS_CONST)                                                     \
  template <class C, class R, class... P, bool NoExcept,                                         \
            R (C::*Method)(P...) QUALIFIERS noexcept(NoExcept)>                                  \
  struct method<Method> {                                                                        \
    using object = C;                                                                            \
    using result = R;                                                                            \
    using arguments = std::tuple<travelling_parameter<P>...>;                                    \
    static constexpr bool is_const = IS_CONST;                                                   \
    static constexpr bool has_batch = (is_batch<std::remove_cvref_t<P>> || ...);                 \
    static constexpr std::size_t arity = sizeof...(P);                                           \
    static constexpr bool parameters_travel =                                                    \
        ((parameter_travels<P> && marshals<travelling_parameter<P>>) && ...);                    \
    /* None is a right, which would be gone after the call has been sent. */                     \
    static constexpr bool parameters_may_stay =                                                  \
        ((marshals_copies<travelling_parameter<P>> || is_view<travelling_parameter<P>>) && ...); \
    static constexpr bool has_plain_arguments = (travels<travelling_parameter<P>> && ...);       \
    /* The frames of an access own nothing, so that they may migrate. */                         \
    static constexpr bool is_plain_access = has_plain_arguments && travels<R>;                   \
    template <class T, bool Checked>                                                             \
    using target = method_target<Method, T, C, R, Checked>;                                      \
    template <class T, bool Checked>                                                             \
    using request = request_of<target<T, Checked>, travelling_parameter<P>...>;                  \
    template <class T, bool Checked, template <class, class...> class Bundles>                   \
    using bundled_in =                                                                           \
        Bundles<bundled_method_callee<target<T, Checked>, Checked>, travelling_parameter<P>...>; \
    template <class T, bool Checked>                                                             \
    using bundled = typename std::conditional_t<                                                 \
        has_plain_arguments, std::type_identity<bundled_in<T, Checked, bundled_calls>>,          \
        std::type_identity<bundled_in<T, Checked, bundled_values>>>::type;                       \
  }
SOJOURN_METHOD(, false);
SOJOURN_METHOD(const, true);
#undef SOJOURN_METHOD

template <auto Method, class T, class... A>
struct checked_method {
  using traits = method<Method>;
  using called = T;
  using result = typename traits::result;
  using arguments = typename traits::arguments;

  static_assert(std::is_base_of_v<typename traits::object, std::remove_const_t<T>>,
                "sojourn: this is not a method of the object that the global_ptr points to");
  static_assert(traits::is_const || !std::is_const_v<T>,
                "sojourn: a method that is not const cannot be called through a "
                "global_ptr<const T>");
  static_assert(traits::parameters_travel,
                "sojourn: a parameter of this method cannot travel: take values or const& of types "
                "that sojourn/calls/marshal.hpp lists: no pointers, no shared_ptr");
  static_assert(!traits::has_batch || takes_batch<decltype(Method)>,
                "sojourn: a method that takes a batch takes it by value, and nothing else");
  static_assert(is_result<result>,
                "sojourn: the result of this method cannot travel: return a value of a type that "
                "sojourn/calls/marshal.hpp lists: no pointer, no reference, no view");
  static_assert(sizeof...(A) != traits::arity || std::is_constructible_v<arguments, A...>,
                "sojourn: the arguments of this access do not fit the method's parameters");
  static_assert(sizeof...(A) == traits::arity,
                "sojourn: this access has too few or too many arguments for the method");

  template <class... B>
  [[gnu::always_inline]] static inline result invoke(T* object, B&&... b) {
    method_guard guard;
    keep_address(object);
    [[maybe_unused]] const address_kept_of<T> kept(object);
    return in_turn(*object, [&]() -> result {
      [[maybe_unused]] const promise_if<promises_not_to_wait<Method>> promise;
      return (as_object(object)->*Method)(std::forward<B>(b)...);
    });
  }

  static constexpr bool is_plain = traits::is_plain_access;
  static constexpr bool is_cacheable =
      traits::is_const && traits::parameters_may_stay && can_move<std::remove_const_t<T>>;
  static bool is_never_copied(const char* called) {
    return never_copied<std::remove_const_t<T>>(called);
  }
  /// Not of objects that the program may change past their methods; nor, unless it says so, of
  /// those that may point to memory of their rank.
  static bool may_choose_copy(bool said) {
    using object = std::remove_const_t<T>;
    return !is_never_copied(nullptr) && !has_raw_pointers<object> &&
           (said || (is_copied_by_bytes<object> && !has_known_address<object> &&
                     !may_hide_address<object>));
  }
  static constexpr std::size_t object_bytes = sizeof(T);
  static object_shape shape() { return shape_of<std::remove_const_t<T>>(); }
  static constexpr bool writes = !traits::is_const;
  static constexpr bool is_movable = can_move<std::remove_const_t<T>>;
  static bool is_never_moved(const char* called) {
    return never_moves<std::remove_const_t<T>>(called);
  }
  static const char* name() { return method_name<Method>(); }

  /// Starts a call that is not a plain one: of an object of another rank, or, in checked mode, of
  /// any object.
  [[gnu::noinline]] static future<result> start(std::uint64_t address, arguments a) {
    const code_site site = site_of(__builtin_return_address(0));
    int owner = owner_of_object(address, name());
    if (job.has_moved) [[unlikely]]
      owner = probable_place(address);
    if (owner != job.me)
      return future_access::of_ticket<future<result>>(send(owner, address, site, a));
    if (!job.has_copied) check(address, site);
    return std::apply([&](auto&... b) { return fork(object_at(address), std::move(b)...); }, a);
  }

  /// Calls the method without an answer, in a bundle where calls are bundled.
  template <class... B>
  [[gnu::always_inline]] static inline void one_way(std::uint64_t address, B&&... b) {
    if constexpr (traits::has_plain_arguments) {
      using bundled = typename traits::template bundled<T, false>;
      if constexpr (bundled::fits) {
        const int to = owner_of(address);
        if (static_cast<unsigned>(to) < open_run_count && !job.has_moved && !checked()) [[likely]] {
          arguments a(std::forward<B>(b)...);
          const bool is_added = std::apply(
              [&](auto&... c) { return bundled::add_to_open_run(to, address, {}, c...); }, a);
          if (is_added) [[likely]]
            return;
          return begin_one_way(address, std::move(a));
        }
      }
    }
    begin_one_way(address, arguments(std::forward<B>(b)...));
  }
  /// Calls the method for `count` items of a batch, which lie as in one, in a message of their own.
  /// False when that would have to wait.
  static bool one_way_now(std::uint64_t address, const std::byte* items, std::size_t count) {
    using bundled = typename traits::template bundled<T, false>;
    if constexpr (bundled::fits) {
      const int to = owner_of(address);
      if (static_cast<unsigned>(to) < open_run_count && !job.has_moved && !checked())
        return bundled::send_now(to, address, items, count);
    }
    return false;
  }
  /// The same as one_way for each of `count` items of a method that takes a batch. The items lie as
  /// in a batch.
  static void one_way_each(std::uint64_t address, const std::byte* items, std::size_t count) {
    using bundled = typename traits::template bundled<T, false>;
    const int to = owner_of(address);
    while (count > 0) {
      std::size_t added = 0;
      if constexpr (bundled::fits) {
        if (static_cast<unsigned>(to) < open_run_count && !checked())
          added = bundled::copy_to_open_run(to, address, items, count);
      }
      if (added == 0) {
        room<arguments> one;
        std::memcpy(static_cast<void*>(&one.value), items, sizeof(arguments));
        begin_one_way(address, one.value);
        added = 1;
      }
      items += added * bundled::stride;
      count -= added;
    }
  }
  /// The same as one_way, not only while there is room in an open run.
  [[gnu::noinline]] static void begin_one_way(std::uint64_t address, arguments a) {
    const code_site site = site_of(__builtin_return_address(0));
    const int owner = owner_of_object(address, name());
    const int to = job.has_moved ? probable_place(address) : owner;
    if (checked()) [[unlikely]]
      std::apply([&](const auto&... b) { check_arguments(to, b...); }, a);
    if (open_run_count != 0) {
      if (checked() ? is_bundled<true>(to, address, site, a)
                    : is_bundled<false>(to, address, site, a))
        return;
      ++counts.calls_not_bundled;
    }
    (void)send_by(request_way{to, false}, address, site, a);
  }

  // The parts of perform() (access.hpp).

  [[gnu::always_inline]] static inline result run_here(std::uint64_t address, code_site site,
                                                       arguments& a) {
    check(address, site);
    [[maybe_unused]] const change_by<decltype(Method), T> changes(untyped_at(address), sizeof(T));
    return std::apply(
        [&](auto&... b) -> result { return invoke(object_at(address), std::move(b)...); }, a);
  }
  template <class... B>
  [[gnu::always_inline]] static inline result invoke_on_copy(copy_block* copy, B&&... b) {
    ++copy->uses;
    const use_of_copy use(copy);
    return invoke(static_cast<T*>(copy->object()), std::forward<B>(b)...);
  }
  static result run_on_object(const object_place& at, std::uint64_t address, code_site site,
                              arguments& a) {
    if (at.block == nullptr) return run_here(address, site, a);
    ++at.block->uses;
    ++calls_of_guests;
    const use_of_copy use(at.block);
    [[maybe_unused]] const change_by<decltype(Method), T> changes(untyped_at(address), sizeof(T));
    return std::apply(
        [&](auto&... b) -> result { return invoke(static_cast<T*>(at.here), std::move(b)...); }, a);
  }
  static result run_on(copy_block* copy, arguments& a) {
    return std::apply([&](auto&... b) -> result { return invoke_on_copy(copy, std::move(b)...); },
                      a);
  }

  static ticket_id send(int owner, std::uint64_t address, code_site site, arguments& a) {
    return send_by(request_way{owner, true}, address, site, a);
  }
  template <class Way>
  static ticket_id send_by(const Way& way, std::uint64_t address, code_site site, arguments& a) {
    ++counts.calls_remote;
    if (checked()) [[unlikely]]
      return send_checked(way, address, site, a);
    return send_as<false>(way, {untyped_at(address)}, a);
  }

  /// Runs the method under a fork mark: the caller goes on when the method blocks.
  template <class... B>
  static future<result> fork(T* object, B&&... b) {
    return fork_with(static_cast<arguments*>(nullptr), object, std::forward<B>(b)...);
  }

 private:
  template <bool Checked>
  static bool is_bundled(int to, std::uint64_t address, [[maybe_unused]] code_site site,
                         arguments& a) {
    using bundled = typename traits::template bundled<T, Checked>;
    if constexpr (!bundled::fits) {
      return false;
    } else {
      if (static_cast<unsigned>(to) >= open_run_count) return false;
      typename bundled::head what{};
      if constexpr (Checked) what = site;
      return std::apply([&](auto&... b) { return bundled::add(to, address, what, b...); }, a);
    }
  }

  template <class... P, class... B>
  [[gnu::always_inline]] static inline future<result> fork_with(std::tuple<P...>*, T* object,
                                                                B&&... b) {
    auto body = [](T* o, auto... c) -> result {
      // Asked when it begins: a child need not begin at once.
      if (job.has_copied) [[unlikely]]
        return perform<checked_method>(reinterpret_cast<std::uint64_t>(o), access(via::rpc),
                                       arguments(std::move(c)...));
      return invoke(o, std::move(c)...);
    };
    return call_forked<mark_kind::fork_pinned, result>(body, object,
                                                       outlive<P>(std::forward<B>(b))...);
  }

  template <class Way>
  [[gnu::noinline]] static ticket_id send_checked(const Way& way, std::uint64_t address,
                                                  code_site site, arguments& a) {
    std::apply([&](const auto&... b) { check_arguments(way.to, b...); }, a);
    return send_as<true>(way, {untyped_at(address), site}, a);
  }

  template <bool Checked, class Way>
  [[gnu::always_inline]] static ticket_id send_as(const Way& way, const method_head<Checked>& head,
                                                  arguments& a) {
    return traits::template request<T, Checked>::send_tuple(way, head, a);
  }

  [[gnu::always_inline]] static inline void check(std::uint64_t address, code_site site) {
    if (checked()) [[unlikely]]
      check_access(address, kind_of_object<T>(), name(), site);
  }

  using object_type = std::conditional_t<std::is_const_v<T>, const typename traits::object,
                                         typename traits::object>;
  static object_type* as_object(T* object) { return object; }
  static T* object_at(std::uint64_t address) { return reinterpret_cast<T*>(address); }
  static void* untyped_at(std::uint64_t address) { return reinterpret_cast<void*>(address); }
};

}  // namespace sojourn::detail
