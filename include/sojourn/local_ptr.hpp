// SPDX-License-Identifier: Apache-2.0
// Plain pointers into the global heap, where ranks share it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/global_ptr.hpp"

namespace sojourn {

namespace detail {
[[noreturn]] void refuse_local_ptr(std::uint64_t address);
}  // namespace detail

/// A pointer to a T in the global heap of any rank of this host, for use in place: the heaps of a
/// host's ranks lie at the same addresses in all of them. Unlike a T* it travels, as an argument,
/// as a member of what travels, and with frames, so a child that is given one may run on an idle
/// rank of this host. The program has to order reads and writes through it, as with threads.
///
/// Where heaps are not shared (`--share off`), only the rank that owns the memory may use it, and
/// children that are given one stay (fork).
template <class T>
class local_ptr {
 public:
  using element_type = T;

  constexpr local_ptr() = default;
  constexpr local_ptr(std::nullptr_t) {}
  /// Requires: null, or in the global heap of a rank of this host. Errors: sojourn::error when it
  /// is elsewhere, as on a stack.
  explicit local_ptr(T* object) : address_(reinterpret_cast<std::uint64_t>(object)) { (void)get(); }
  explicit local_ptr(global_ptr<T> object) : address_(object.address()) { (void)get(); }
  operator local_ptr<const T>() const
    requires(!std::is_const_v<T>)
  {
    return local_ptr<const T>(get());
  }

  /// Costs a subtraction and a comparison, so call it once before a loop. Errors: sojourn::error
  /// where the memory is another rank's and heaps are not shared.
  T* get() const {
    (void)&detail::notes_raw_pointers<T>;
    if (address_ - detail::job.reach >= detail::job.reach_bytes && address_ != 0) [[unlikely]] {
      detail::refuse_local_ptr(address_);
    }
    return reinterpret_cast<T*>(address_);
  }
  /// Require: not null. Errors: as get().
  T& operator*() const { return *get(); }
  T* operator->() const { return get(); }
  T& operator[](std::size_t i) const { return get()[i]; }

  global_ptr<T> global() const { return global_ptr<T>::at(address_); }
  constexpr explicit operator bool() const { return address_ != 0; }
  friend constexpr bool operator==(local_ptr, local_ptr) = default;
  friend constexpr auto operator<=>(local_ptr, local_ptr) = default;
  /// Counts elements. Requires: all pointers are to elements of one array.
  friend local_ptr operator+(local_ptr p, std::ptrdiff_t elements) {
    p.address_ += static_cast<std::uint64_t>(elements) * sizeof(T);
    return p;
  }
  friend std::ptrdiff_t operator-(local_ptr a, local_ptr b) {
    return static_cast<std::ptrdiff_t>(a.address_ - b.address_) /
           static_cast<std::ptrdiff_t>(sizeof(T));
  }

 private:
  std::uint64_t address_ = 0;
};

template <class T>
inline constexpr bool travels<local_ptr<T>> = true;

namespace detail {

template <class T>
inline constexpr bool may_hide_address<local_ptr<T>> = false;

/// Only such a pointer can be made of it.
struct any_local_ptr {
  template <class T>
  operator local_ptr<T>() const {
    __builtin_unreachable();
  }
};
template <class T, std::size_t... Before>
consteval bool local_ptr_behind(std::index_sequence<Before...>) {
  return requires { T{field_at<Before>()..., any_local_ptr()}; };
}
/// A local_ptr, or an aggregate with one among its members.
template <class T>
consteval bool holds_local_ptr() {
  if constexpr (!std::is_class_v<T>) {
    return false;
  } else if constexpr (std::is_aggregate_v<T>) {
    constexpr std::size_t members = braced_count<T>();
    if constexpr (members > braced_max) {
      return false;
    } else {
      return []<std::size_t... I>(std::index_sequence<I...>) {
        return (local_ptr_behind<T>(std::make_index_sequence<I>()) || ...);
      }(std::make_index_sequence<members>());
    }
  } else {
    return false;
  }
}
template <class T>
inline constexpr bool uses_shared_heap = holds_local_ptr<T>();
template <class T>
inline constexpr bool uses_shared_heap<local_ptr<T>> = true;

}  // namespace detail
}  // namespace sojourn
