// SPDX-License-Identifier: Apache-2.0
// Objects anywhere in the job, and accesses to them.
//
// One function, whose accesses go there as calls or by moving there (docs/examples/account.cpp):
//
//     long deposit_three_times(global_ptr<account> a, long cents, via how) {
//       a.call<&account::deposit>(how, cents);
//       a.call<&account::deposit>(how, cents);
//       return a.call<&account::deposit>(how, cents);
//     }
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "sojourn/counters.hpp"
#include "sojourn/detail/addresses.hpp"
#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/method.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/future.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace detail {
template <class M, class T, class... A>
struct named_access;
/// Never made: its name tells what to do.
struct an_overloaded_method_needs_a_static_cast {};
}  // namespace detail

/// The job-wide address of a T. A plain 64-bit value: it travels, and can be kept in other objects.
/// There is no *, -> or [], so that no access is remote by accident. T may be void or incomplete:
/// then the address is all there is.
template <class T>
class global_ptr {
 public:
  using element_type = T;
  using difference_type = std::ptrdiff_t;

  constexpr global_ptr() = default;
  constexpr global_ptr(std::nullptr_t) {}
  /// Points to an object that lies in this rank's global heap, such as `this` in a method.
  explicit global_ptr(T* local) : address_(detail::original_of(local)) {
    (void)&detail::notes_known_address<T>;
  }
  constexpr operator global_ptr<const T>() const
    requires(!std::is_const_v<T>)
  {
    return global_ptr<const T>::at(address_);
  }
  static constexpr global_ptr at(std::uint64_t address) {
    global_ptr p;
    p.address_ = address;
    return p;
  }

  /// The rank that made the object; -1 when the pointer is null or to no rank's heap.
  rank_t home() const { return detail::owner_of(address_); }
  /// The rank at which the object is, as far as this rank knows: home(), if it has not moved
  /// (via::fetch). Never suspends.
  rank_t where() const {
    return detail::job.has_moved && address_ != 0 ? detail::probable_place(address_) : home();
  }
  /// True when this rank made the object. Costs a subtraction and a comparison.
  bool is_local() const { return detail::is_here(address_); }
  /// The object itself. Requires: is_local(). Objects of a type for which a program uses this do
  /// not move. Errors: sojourn::error when a part of the object has moved, or one that it is a part
  /// or a base of.
  T* local() const {
    (void)&detail::notes_raw_pointers<T>;
    if (detail::job.has_moved) [[unlikely]]
      detail::refuse_if_away(address_, detail::known_size<T>());
    return reinterpret_cast<T*>(address_);
  }

  constexpr std::uint64_t address() const { return address_; }
  constexpr explicit operator bool() const { return address_ != 0; }
  friend constexpr bool operator==(global_ptr, global_ptr) = default;
  friend constexpr auto operator<=>(global_ptr, global_ptr) = default;

  /// Count elements. Require: all pointers are to elements of one array, or one past its last.
  friend constexpr global_ptr operator+(global_ptr p, std::ptrdiff_t elements) {
    return p += elements;
  }
  friend constexpr global_ptr operator+(std::ptrdiff_t elements, global_ptr p) {
    return p += elements;
  }
  friend constexpr global_ptr operator-(global_ptr p, std::ptrdiff_t elements) {
    return p -= elements;
  }
  friend constexpr std::ptrdiff_t operator-(global_ptr a, global_ptr b) {
    return static_cast<std::ptrdiff_t>(a.address_ - b.address_) /
           static_cast<std::ptrdiff_t>(element_bytes());
  }
  constexpr global_ptr& operator+=(std::ptrdiff_t elements) {
    address_ += static_cast<std::uint64_t>(elements) * element_bytes();
    return *this;
  }
  constexpr global_ptr& operator-=(std::ptrdiff_t elements) {
    address_ -= static_cast<std::uint64_t>(elements) * element_bytes();
    return *this;
  }
  constexpr global_ptr& operator++() { return *this += 1; }
  constexpr global_ptr& operator--() { return *this -= 1; }
  constexpr global_ptr operator++(int) { return std::exchange(*this, *this + 1); }
  constexpr global_ptr operator--(int) { return std::exchange(*this, *this - 1); }
  /// Refused, with sentences that say what to write.
  template <class I = T>
  std::add_lvalue_reference_t<I> operator*() const {
    static_assert(!std::is_same_v<I, I>,
                  "sojourn: *p would hide an access to another rank: write load(p), "
                  "store(p, value) or, where the object is local, *p.local()");
    __builtin_unreachable();
  }
  template <class I = T>
  I* operator->() const {
    static_assert(!std::is_same_v<I, I>,
                  "sojourn: p->m() would hide an access to another rank: write p.call<&T::m>() or, "
                  "where the object is local, p.local()->m()");
    __builtin_unreachable();
  }
  template <class I>
  void operator[](I) const {
    static_assert(!std::is_same_v<I, I>,
                  "sojourn: p[i] would hide an access to another rank: write load(p + i), "
                  "store(p + i, value) or, where the element is local, (p + i).local()");
  }

  /// Calls the method and returns its result; what it throws is thrown here. `how` says what is
  /// done when the object is on another rank; via::unsaid when nothing is said. A local object
  /// costs a comparison and a plain call, whatever `how` says. Suspends: when the object is remote.
  /// Migrates: when it is remote and `how` says so.
  /// Errors: sojourn::error when the pointer is null or outside every heap.
  template <auto Method, class... A>
  [[gnu::always_inline]] inline auto call(detail::access how, A&&... arguments) const ->
      typename detail::method<Method>::result {
    using method = detail::checked_method<Method, T, A...>;
    if (detail::is_quick(address_)) [[likely]] {
      return method::invoke(reinterpret_cast<T*>(address_), std::forward<A>(arguments)...);
    }
    if constexpr (method::is_cacheable) {
      const bool takes_copy = how.how.how() == via::mechanism::cache ||
                              (how.how.how() == via::mechanism::automatic &&
                               method::may_choose_copy(!how.how.is_unsaid())) ||
                              (method::is_movable && how.how.how() == via::mechanism::fetch);
      if (takes_copy && (detail::job.overrides & detail::job_view::overrides_words) == 0) {
        if (detail::copy_block* const copy = detail::copy_at_hand<T>(address_)) {
          ++detail::counts.cache_hits;
          return method::invoke_on_copy(copy, std::forward<A>(arguments)...);
        }
      }
    }
    return detail::perform<method>(address_, how,
                                   typename method::arguments(std::forward<A>(arguments)...));
  }
  template <auto Method, class... A>
    requires(!detail::begins_with_access<A...>)
  [[gnu::always_inline]] inline auto call(A&&... arguments) const ->
      typename detail::method<Method>::result {
    return call<Method>(detail::access(via::unsaid), std::forward<A>(arguments)...);
  }

  /// Starts the call and returns the future of its result. On a local object the method runs at
  /// once on this stack; if it blocks, the caller goes on, and otherwise this is a plain call
  /// (Concert, §3.1). What migrates is at most the new computation, not the caller, so
  /// `via::migrate` means the same as `via::rpc` here. Suspends: only when the way to the owner is
  /// full.
  template <auto Method, class... A>
  auto async(detail::access, A&&... arguments) const {
    using method = detail::checked_method<Method, T, A...>;
    if (detail::is_quick(address_)) [[likely]] {
      return method::fork(reinterpret_cast<T*>(address_), std::forward<A>(arguments)...);
    }
    return method::start(address_, typename method::arguments(std::forward<A>(arguments)...));
  }
  template <auto Method, class... A>
    requires(!detail::begins_with_access<A...>)
  auto async(A&&... arguments) const {
    return async<Method>(detail::access(via::rpc), std::forward<A>(arguments)...);
  }

  /// Calls the method and waits for nothing: as rpc_ff, with the object in the function's place. A
  /// surrounding finish or finish_all waits for it, and rethrows an exception that leaves it;
  /// without one such an exception ends the job. What the method returns is dropped. Such calls,
  /// and those of rpc_ff, begin on a rank in the order in which another rank makes them, unless
  /// their object has moved. Many small ones go in one message (aggregate.hpp): then the object
  /// stands once before all calls of it that follow each other. Suspends: only when the way to the
  /// object's rank is full. Errors: as call.
  template <auto Method, class... A>
  [[gnu::always_inline]] inline void ff(A&&... arguments) const {
    detail::checked_method<Method, T, A...>::one_way(address_, std::forward<A>(arguments)...);
  }

  /// The name of several methods is none: compilers show these declarations.
  template <detail::an_overloaded_method_needs_a_static_cast Method, class... A>
  void call(A&&...) const = delete;
  template <detail::an_overloaded_method_needs_a_static_cast Method, class... A>
  void async(A&&...) const = delete;
  template <detail::an_overloaded_method_needs_a_static_cast Method, class... A>
  void ff(A&&...) const = delete;

  /// As call above, of a method by its name, of a class that another program may have (mpmd.hpp).
  /// `via::migrate` moves only to ranks of the same program, and is an rpc otherwise. Errors: also
  /// not_exported.
  template <class Method, class... A>
  auto call(detail::access how, A&&... arguments) const -> typename Method::result {
    using access = detail::named_access<Method, T, A...>;
    return detail::perform<access>(address_, how,
                                   typename access::arguments(std::forward<A>(arguments)...));
  }
  template <class Method, class... A>
    requires(!detail::begins_with_access<A...>)
  auto call(A&&... arguments) const -> typename Method::result {
    return call<Method>(detail::access(via::unsaid), std::forward<A>(arguments)...);
  }
  /// Starts the call of a method by its name and returns the future of its result. Also on an
  /// object of this rank the method runs later, as with rpc. Suspends: only when the way to the
  /// owner is full.
  template <class Method, class... A>
    requires(!detail::begins_with_access<A...>)
  auto async(A&&... arguments) const -> future<typename Method::result> {
    using access = detail::named_access<Method, T, A...>;
    return access::start(address_, typename access::arguments(std::forward<A>(arguments)...));
  }
  template <class Method, class... A>
  auto async(detail::access, A&&... arguments) const -> future<typename Method::result> {
    return async<Method>(std::forward<A>(arguments)...);
  }

 private:
  static consteval std::uint64_t element_bytes() {
    constexpr bool has_size = !std::is_void_v<T> && requires { sizeof(T); };
    static_assert(has_size,
                  "sojourn: arithmetic with a global_ptr needs the size of its element, and this "
                  "type is void or incomplete");
    if constexpr (has_size) return sizeof(T);
    return 1;
  }

  std::uint64_t address_ = 0;
};

namespace detail {

/// It looks like an iterator, because it has the operators that it refuses.
template <class T>
inline constexpr bool has_address<global_ptr<T>> = false;
template <class T>
inline constexpr bool may_hide_address<global_ptr<T>> = false;

/// The address of the Base in the Derived at `address`; reads no memory.
template <class Base, class Derived>
std::uint64_t address_of_base(std::uint64_t address) {
  return reinterpret_cast<std::uint64_t>(
      static_cast<const volatile Base*>(reinterpret_cast<const volatile Derived*>(address)));
}
template <class To, class From>
inline constexpr bool casts_statically = requires(From* p) { static_cast<To*>(p); };

}  // namespace detail

/// As static_cast of pointers: to a base class, to a derived class, to const, to and from void.
/// Reads no memory, so a virtual base cannot be cast to.
template <class U, class T>
global_ptr<U> static_pointer_cast(global_ptr<T> p) {
  static_assert(detail::casts_statically<U, T>,
                "sojourn: static_pointer_cast: static_cast would not convert these pointers");
  using to = std::remove_cv_t<U>;
  using from = std::remove_cv_t<T>;
  if constexpr (std::is_void_v<U> || std::is_void_v<T> || std::is_same_v<to, from>) {
    return global_ptr<U>::at(p.address());
  } else {
    static_assert(
        detail::casts_statically<const volatile to, const volatile from> &&
            detail::casts_statically<const volatile from, const volatile to>,
        "sojourn: static_pointer_cast: only the object itself knows where its virtual base "
        "lies, so such a base cannot be cast to or from");
    if (!p) return {};
    if constexpr (std::is_base_of_v<to, from>) {
      return global_ptr<U>::at(detail::address_of_base<to, from>(p.address()));
    } else {
      const std::uint64_t offset = detail::address_of_base<from, to>(p.address()) - p.address();
      return global_ptr<U>::at(p.address() - offset);
    }
  }
}
/// The same address, as a pointer to U. Requires: a U lies there, or the language lets a U be used
/// to access what does (the bytes of an object, say).
template <class U, class T>
constexpr global_ptr<U> reinterpret_pointer_cast(global_ptr<T> p) {
  static_assert(std::is_const_v<U> || !std::is_const_v<T>,
                "sojourn: reinterpret_pointer_cast does not cast away const");
  return global_ptr<U>::at(p.address());
}
/// Adds or removes const. Requires: what is written to is not const.
template <class U, class T>
constexpr global_ptr<U> const_pointer_cast(global_ptr<T> p) {
  static_assert(std::is_same_v<std::remove_cv_t<U>, std::remove_cv_t<T>>,
                "sojourn: const_pointer_cast changes only const");
  return global_ptr<U>::at(p.address());
}

}  // namespace sojourn

template <class T>
struct std::hash<sojourn::global_ptr<T>> {
  std::size_t operator()(sojourn::global_ptr<T> p) const {
    return std::hash<std::uint64_t>()(p.address());
  }
};
