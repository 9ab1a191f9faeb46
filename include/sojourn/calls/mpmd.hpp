// SPDX-License-Identifier: Apache-2.0
// Jobs of several programs: functions and classes that a program exports by name. Other programs
// call them through an interface that both include, without linking the implementation.
// (docs/mpmd.md)
// Source: Chang, Czajkowski and von Eicken, MRPC: A High Performance RPC System for MPMD Parallel
// Computing (1999), section 3.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/named.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

/// A function by name: `using do_work = method<"worker.do_work", void(int)>`. Called as
/// `rpc(rank, do_work(), 5)`, on any rank whose program exports it.
///
/// With a pointer to a member function as signature it names a method of a class, which need not be
/// complete where the method is called: `method<"counter.add", long (counter::*)(long)>`, called as
/// `p.call<counter_add>(5)`. Parameters are values or const& of types that marshal.hpp lists, and
/// the result is a value of such a type. If one of them owns memory, `via::migrate` is an rpc.
template <detail::fixed_name Name, class Signature>
struct method {
  using named = detail::named<Name, Signature>;
  using result = typename named::result;
  using arguments = typename named::arguments;

  static_assert(detail::signature_of<Signature>::parameters_travel,
                "sojourn: a parameter of this method cannot travel: take values or const& of types "
                "that sojourn/calls/marshal.hpp lists: no pointers, no shared_ptr");
  static_assert(detail::is_result<result>,
                "sojourn: the result of this method cannot travel: return a value of a type that "
                "sojourn/calls/marshal.hpp lists: no pointer, no reference, no view");

  static constexpr std::string_view name() { return Name.view(); }
  /// The signature as errors show it; the same whichever compiler built the program.
  static constexpr std::string_view signature() {
    return {detail::signature_text<Signature>::value.data(),
            detail::signature_text<Signature>::size};
  }
};

/// A constructor by name, T(P…): make<create>(rank, …) constructs a T on a rank whose program
/// exports it, and `destroy` is a method that destroys one. T need not be complete where it is
/// called.
template <detail::fixed_name Name, class Signature>
struct constructor {
  static_assert(std::is_void_v<Signature>,
                "sojourn: the signature of a constructor is T(P...), T the class");
};
template <detail::fixed_name Name, class T, class... P>
struct constructor<Name, T(P...)> : method<Name, global_ptr<T>(P...)> {
  using object = T;
  using function = method<Name, global_ptr<T>(P...)>;
  using destroy = method<detail::dotted(Name, detail::fixed_name("~")), void (T::*)()>;
};

/// Base of the interface of a class: it puts the class and its name into the members of the
/// interface.
///
///     struct counter;
///     struct counter_interface : remote_class<counter, "counter"> {
///       using create = constructor<long>;                     // "counter"
///       using add = method<"add", long(long)>;                // "counter.add"
///       using value = method<"value", long() const>;
///     };
template <class T, detail::fixed_name Name>
struct remote_class {
  template <class... P>
  using constructor = sojourn::constructor<Name, T(P...)>;
  template <detail::fixed_name Method, class Signature>
  using method = sojourn::method<detail::dotted(Name, Method), Signature T::*>;
  using destroy = typename sojourn::constructor<Name, T()>::destroy;
};

/// Lets other programs, and ranks of this one, call `implementation` (a function, a callable
/// without captures, or a pointer to a method) by the name of `M`. Requires: called before run(),
/// once for each name, in any order. Errors: a wrong export keeps the job from starting, with a
/// sentence that says why.
template <class M, class Implementation = typename M::named::signature::implementation>
void exports(Implementation implementation) {
  using named = typename M::named;
  static_assert(std::is_member_pointer_v<Implementation> || detail::is_captureless<Implementation>,
                "sojourn: what is exported cannot capture variables");
  constexpr bool fits = []<class... A>(std::type_identity<std::tuple<A...>>) {
    if constexpr (named::signature::is_method) {
      return std::is_invocable_r_v<typename M::result, Implementation, typename named::object&,
                                   A...>;
    } else {
      return std::is_invocable_r_v<typename M::result, Implementation, A...>;
    }
  }(std::type_identity<typename M::arguments>{});
  static_assert(fits, "sojourn: what is exported does not fit the signature of its name");
  if constexpr (fits) detail::exported<named, Implementation>::add(implementation);
}

namespace detail {
template <class Constructor>
struct exported_constructor;
template <fixed_name Name, class T, class... P>
struct exported_constructor<sojourn::constructor<Name, T(P...)>> {
  static_assert(std::is_constructible_v<T, travelling_parameter<P>...>,
                "sojourn: T cannot be constructed from the parameters of this constructor");
  static global_ptr<T> make(travelling_parameter<P>... a) {
    return make_here<T, travelling_parameter<P>...>(std::move(a)...);
  }
  static void destroy(T& object) {
    global_ptr<T> p(&object);
    if (checked()) return destroy_checked_here(p, sizeof(T), {0, job.me});
    destroy_here(p);
  }
};
template <class C>
concept named_constructor = requires {
  typename C::destroy;
  typename C::object;
  typename C::named;
};
}  // namespace detail

/// Exports a constructor of a class, and its destructor.
template <detail::named_constructor C>
void exports() {
  using own = detail::exported_constructor<C>;
  exports<C>(&own::make);
  exports<typename C::destroy>(&own::destroy);
}

/// Calls a function by name on `rank`, whatever program runs there. The first call carries the
/// name, and `rank` answers where the function is; later calls carry that instead. Suspends: only
/// when the way to `rank` is full. Errors, thrown by the future's get(): not_exported, when `rank`
/// does not export the name, or exports it with another signature; what the function threw. Source:
/// MRPC, section 3 (name resolution, stub caching).
template <detail::fixed_name Name, class R, class... P, class... A>
future<R> rpc(rank_t rank, method<Name, R(P...)>, A... arguments) {
  using named = detail::named<Name, R(P...)>;
  constexpr bool fits =
      sizeof...(A) == sizeof...(P) && std::is_constructible_v<typename named::arguments, A...>;
  static_assert(fits, "sojourn: the arguments of this call do not fit the method's parameters");
  if constexpr (fits) {
    return detail::future_access::of_ticket<future<R>>(
        detail::send_named<named>(rank, true, typename named::arguments(std::move(arguments)...)));
  }
}

/// The same without a reply, as rpc_ff: a surrounding finish gets not_exported, too; without one it
/// ends the job.
template <detail::fixed_name Name, class R, class... P, class... A>
void rpc_ff(rank_t rank, method<Name, R(P...)>, A... arguments) {
  using named = detail::named<Name, R(P...)>;
  constexpr bool fits =
      sizeof...(A) == sizeof...(P) && std::is_constructible_v<typename named::arguments, A...>;
  static_assert(fits, "sojourn: the arguments of this call do not fit the method's parameters");
  if constexpr (fits) {
    (void)detail::send_named<named>(rank, false,
                                    typename named::arguments(std::move(arguments)...));
  }
}

/// Constructs an object by a constructor's name on `rank`. What the constructor throws is thrown
/// here. Suspends. Errors: not_exported; std::bad_alloc.
template <detail::named_constructor C, class... A>
global_ptr<typename C::object> make(rank_t rank, A... arguments) {
  return rpc(rank, typename C::function(), std::move(arguments)...).get();
}

}  // namespace sojourn
