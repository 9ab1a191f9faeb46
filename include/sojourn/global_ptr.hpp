// SPDX-License-Identifier: Apache-2.0
// Objects anywhere in the job, and accesses to them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "sojourn/counters.hpp"
#include "sojourn/detail/method.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/future.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace detail {
template <class M, class T, class... A>
struct named_access;
}  // namespace detail

/// The job-wide address of a T. A plain 64-bit value: it travels, and can be kept in other objects.
/// There is no operator*, so that no access is remote by accident.
template <class T>
class global_ptr {
 public:
  using element_type = T;

  constexpr global_ptr() = default;
  constexpr global_ptr(std::nullptr_t) {}
  /// Points to an object that lies in this rank's global heap, such as `this` in a method.
  explicit global_ptr(T* local) : address_(reinterpret_cast<std::uint64_t>(local)) {}
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

  /// The rank that owns the object; -1 when the pointer is null or to no rank's heap.
  rank_t where() const { return detail::owner_of(address_); }
  /// True when this rank owns the object. Costs a subtraction and a comparison.
  bool is_local() const { return detail::is_here(address_); }
  /// The object itself. Requires: is_local().
  T* local() const { return reinterpret_cast<T*>(address_); }

  constexpr std::uint64_t address() const { return address_; }
  constexpr explicit operator bool() const { return address_ != 0; }
  friend constexpr bool operator==(global_ptr, global_ptr) = default;
  friend constexpr auto operator<=>(global_ptr, global_ptr) = default;
  /// Counts elements. Requires: all pointers are to elements of one array.
  constexpr global_ptr operator+(std::ptrdiff_t elements) const {
    return at(address_ + static_cast<std::uint64_t>(elements) * sizeof(T));
  }
  constexpr std::ptrdiff_t operator-(global_ptr other) const {
    return static_cast<std::ptrdiff_t>(address_ - other.address_) /
           static_cast<std::ptrdiff_t>(sizeof(T));
  }

  /// Calls the method at the object's owner and returns its result; what it throws is thrown here.
  /// A local object costs a comparison and a plain call, whatever `how` says. Suspends: when the
  /// object is remote. Migrates: when it is remote and `how` says so.
  /// Errors: sojourn::error when the pointer is null or outside every heap.
  template <auto Method, class... A>
  [[gnu::always_inline]] inline auto call(detail::access how, A&&... arguments) const ->
      typename detail::method<Method>::result {
    using method = detail::checked_method<Method, T, A...>;
    if (detail::is_quick(address_)) [[likely]] {
      return method::invoke(local(), std::forward<A>(arguments)...);
    }
    return detail::perform<method>(address_, how,
                                   typename method::arguments(std::forward<A>(arguments)...));
  }
  template <auto Method, class... A>
    requires(!detail::begins_with_access<A...>)
  [[gnu::always_inline]] inline auto call(A&&... arguments) const ->
      typename detail::method<Method>::result {
    return call<Method>(detail::access(via::rpc), std::forward<A>(arguments)...);
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
      return method::fork(local(), std::forward<A>(arguments)...);
    }
    return method::start(address_, typename method::arguments(std::forward<A>(arguments)...));
  }
  template <auto Method, class... A>
    requires(!detail::begins_with_access<A...>)
  auto async(A&&... arguments) const {
    return async<Method>(detail::access(via::rpc), std::forward<A>(arguments)...);
  }

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
    return call<Method>(detail::access(via::rpc), std::forward<A>(arguments)...);
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
  std::uint64_t address_ = 0;
};

}  // namespace sojourn

template <class T>
struct std::hash<sojourn::global_ptr<T>> {
  std::size_t operator()(sojourn::global_ptr<T> p) const {
    return std::hash<std::uint64_t>()(p.address());
  }
};
