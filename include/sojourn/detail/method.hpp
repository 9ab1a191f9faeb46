// SPDX-License-Identifier: Apache-2.0
// The parts of an access `p.call<&T::method>(…)`: the checks that its types can travel, the plain
// call, and the remote call.
#pragma once

#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/counters.hpp"
#include "sojourn/detail/forked.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/future.hpp"
#include "sojourn/via.hpp"

namespace sojourn {
template <class T>
class global_ptr;
}

namespace sojourn::detail {

template <class... A>
inline constexpr bool begins_with_access = false;
template <class First, class... A>
inline constexpr bool begins_with_access<First, A...> =
    std::is_same_v<std::remove_cvref_t<First>, via> ||
    std::is_same_v<std::remove_cvref_t<First>, access>;

/// A parameter as it travels: `const X&` is bound to a copy at the owner.
template <class P>
using travelling_parameter = std::remove_cvref_t<P>;
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
    static constexpr std::size_t arity = sizeof...(P);                                           \
    static constexpr bool parameters_travel =                                                    \
        ((parameter_travels<P> && marshals<travelling_parameter<P>>) && ...);                    \
    static constexpr bool has_plain_arguments = (travels<travelling_parameter<P>> && ...);       \
    /* The frames of an access own nothing, so that they may migrate. */                         \
    static constexpr bool is_plain_access = has_plain_arguments && travels<R>;                   \
    template <class T>                                                                           \
    using request = method_request<Method, T, C, R, travelling_parameter<P>...>;                 \
    template <class T>                                                                           \
    using checked_request = checked_method_request<Method, T, C, R, travelling_parameter<P>...>; \
    template <class T, bool Checked>                                                             \
    using marshalled = marshalled_method<Checked, Method, T, C, R, travelling_parameter<P>...>;  \
  }
SOJOURN_METHOD(, false);
SOJOURN_METHOD(const, true);
#undef SOJOURN_METHOD

template <auto Method, class T, class... A>
struct checked_method {
  using traits = method<Method>;
  using result = typename traits::result;
  using arguments = typename traits::arguments;
  using request = typename traits::template request<T>;

  static_assert(std::is_base_of_v<typename traits::object, std::remove_const_t<T>>,
                "sojourn: this is not a method of the object that the global_ptr points to");
  static_assert(traits::is_const || !std::is_const_v<T>,
                "sojourn: a method that is not const cannot be called through a "
                "global_ptr<const T>");
  static_assert(traits::parameters_travel,
                "sojourn: a parameter of this method cannot travel: take values or const& of types "
                "that sojourn/marshal.hpp lists: no pointers, no shared_ptr");
  static_assert(is_result<result>,
                "sojourn: the result of this method cannot travel: return a value of a type that "
                "sojourn/marshal.hpp lists: no pointer, no reference, no view");
  static_assert(sizeof...(A) != traits::arity || std::is_constructible_v<arguments, A...>,
                "sojourn: the arguments of this access do not fit the method's parameters");
  static_assert(sizeof...(A) == traits::arity,
                "sojourn: this access has too few or too many arguments for the method");

  template <class... B>
  [[gnu::always_inline]] static inline result invoke(T* object, B&&... b) {
    method_guard guard;
    return in_turn(*object, [&]() -> result {
      [[maybe_unused]] const promise_if<nonblocking_method<Method>> promise;
      return (as_object(object)->*Method)(std::forward<B>(b)...);
    });
  }

  [[gnu::noinline]] static result call_remote(global_ptr<T> p, access how, arguments a) {
    via chosen = how.how;
    if (job.slow_accesses) [[unlikely]] {
      if (job.overrides) chosen = override_access(how, method_name<Method>());
      if (checked()) return call_checked(p, chosen, a, site_of(__builtin_return_address(0)));
    }
    int owner = checked_owner(p.address());
    if constexpr (traits::is_plain_access) {
      if (chosen.how() == via::mechanism::migrate && migrate_activations(owner, chosen)) {
        return std::apply([&](auto&... b) -> result { return invoke(p.local(), std::move(b)...); },
                          a);
      }
    } else {
      counts.migrations_refused += chosen.how() == via::mechanism::migrate;
    }
    return call_by_message(p, owner, a);
  }

  [[gnu::noinline]] static future<result> start_remote(global_ptr<T> p, access, arguments a) {
    if (checked()) [[unlikely]]
      return start_checked(p, a, site_of(__builtin_return_address(0)));
    return future<result>::of_ticket(start(p, checked_owner(p.address()), a));
  }

  /// Runs the method under a fork mark: the caller goes on when the method blocks.
  template <class... B>
  static future<result> fork(T* object, B&&... b) {
    return fork_with(static_cast<arguments*>(nullptr), object, std::forward<B>(b)...);
  }

 private:
  template <class... P, class... B>
  [[gnu::always_inline]] static inline future<result> fork_with(std::tuple<P...>*, T* object,
                                                                B&&... b) {
    auto body = [](T* o, auto... c) -> result { return invoke(o, std::move(c)...); };
    return call_forked<mark_kind::fork_pinned, result>(body, object,
                                                       outlive<P>(std::forward<B>(b))...);
  }

  // In checked mode every access comes here, also those to objects of this rank.
  [[gnu::noinline]] static result call_checked(global_ptr<T> p, via how, arguments& a,
                                               code_site site) {
    if (!p.is_local()) {
      int owner = checked_owner(p.address());
      if constexpr (traits::is_plain_access) {
        if (how.how() != via::mechanism::migrate || !migrate_activations(owner, how)) {
          return take_value<result>(start_checked_request(p, owner, a, site));
        }
      } else {
        stays_here stays;
        counts.migrations_refused += how.how() == via::mechanism::migrate;
        return take_value<result>(start_checked_request(p, owner, a, site));
      }
    }
    check_access(p.address(), kind_of_object<T>(), method_name<Method>(), site);
    return std::apply([&](auto&... b) -> result { return invoke(p.local(), std::move(b)...); }, a);
  }

  [[gnu::noinline]] static future<result> start_checked(global_ptr<T> p, arguments& a,
                                                        code_site site) {
    if (!p.is_local()) {
      int owner = checked_owner(p.address());
      return future<result>::of_ticket(start_checked_request(p, owner, a, site));
    }
    check_access(p.address(), kind_of_object<T>(), method_name<Method>(), site);
    return std::apply([&](auto&... b) { return fork(p.local(), std::move(b)...); }, a);
  }

  static ticket_id start_checked_request(global_ptr<T> p, int owner, arguments& a, code_site site) {
    ++counts.calls_remote;
    if constexpr (traits::has_plain_arguments) {
      using checked_request = typename traits::template checked_request<T>;
      using payload = typename checked_request::payload_type;
      return send_request<checked_request, payload>(
          owner, true, [&](void* room) { ::new (room) payload{site, p.local(), std::move(a)}; });
    } else {
      return send_marshalled_tuple<typename traits::template marshalled<T, true>>(
          owner, {object_address(p), site}, true, a);
    }
  }

  using object_type = std::conditional_t<std::is_const_v<T>, const typename traits::object,
                                         typename traits::object>;
  static object_type* as_object(T* object) { return object; }

  /// A function of its own, so that the frame of call_remote, which may migrate, has no room for
  /// request and reply.
  [[gnu::noinline]] static result call_by_message(global_ptr<T> p, int owner, arguments& a) {
    if constexpr (traits::is_plain_access) {
      return take_value<result>(start(p, owner, a));
    } else {
      stays_here stays;
      return take_value<result>(start(p, owner, a));
    }
  }

  static ticket_id start(global_ptr<T> p, int owner, arguments& a) {
    ++counts.calls_remote;
    if constexpr (traits::has_plain_arguments) {
      using payload = typename request::payload_type;
      return send_request<request, payload>(
          owner, true, [&](void* room) { ::new (room) payload{p.local(), std::move(a)}; });
    } else {
      return send_marshalled_tuple<typename traits::template marshalled<T, false>>(
          owner, {object_address(p)}, true, a);
    }
  }

  static void* object_address(global_ptr<T> p) {
    return const_cast<void*>(static_cast<const void*>(p.local()));
  }

  static int checked_owner(std::uint64_t address) {
    std::uint64_t owner = (address - job.heap) >> job.heap_shift;
    if (owner >= static_cast<std::uint64_t>(job.count)) bad_access(address, method_name<Method>());
    return static_cast<int>(owner);
  }
};

}  // namespace sojourn::detail
