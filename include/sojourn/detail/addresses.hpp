// SPDX-License-Identifier: Apache-2.0
// Which values are addresses of this rank's memory or contain some, as far as types tell. Such
// values must not leave: what a view shows, for example, would stay behind.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sojourn/detail/fields.hpp"

namespace sojourn::detail {

template <class T>
consteval bool holds_address();
/// travels<T> (travels.hpp), which uses this file, and which the program may have declared for T.
template <class T>
consteval bool is_known_to_travel();

/// True when the type tells that a value is an address or holds one. Not seen: what a class keeps
/// private, unless it is an iterator or a view; what a lambda captures; and aggregates of more than
/// 48 elements.
template <class T>
inline constexpr bool has_address = holds_address<T>();
template <class T>
inline constexpr bool has_address<const T> = has_address<T>;
template <class A, class B>
inline constexpr bool has_address<std::pair<A, B>> = has_address<A> || has_address<B>;
template <class... T>
inline constexpr bool has_address<std::tuple<T...>> = (has_address<T> || ...);
template <class T>
inline constexpr bool has_address<std::optional<T>> = has_address<T>;
template <class T, std::size_t N>
inline constexpr bool has_address<std::array<T, N>> = has_address<T>;
template <class T, std::size_t N>
inline constexpr bool has_address<T[N]> = has_address<T>;
template <class... T>
inline constexpr bool has_address<std::variant<T...>> = (has_address<T> || ...);
template <class T, std::size_t N>
inline constexpr bool has_address<std::span<T, N>> = true;
template <class C, class Traits>
inline constexpr bool has_address<std::basic_string_view<C, Traits>> = true;
template <class T>
inline constexpr bool has_address<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool has_address<std::initializer_list<T>> = true;
// Iterators that make their elements, but from memory whose address they hold.
template <>
inline constexpr bool has_address<std::vector<bool>::iterator> = true;
template <>
inline constexpr bool has_address<std::vector<bool>::const_iterator> = true;
template <>
inline constexpr bool has_address<std::vector<bool>::reference> = true;
template <class C, class Traits>
inline constexpr bool has_address<std::istreambuf_iterator<C, Traits>> = true;

/// Converts only to an address, or to a class that may contain one. Not to functions: they have the
/// same addresses on every rank.
struct any_address {
  template <class T>
    requires(!std::is_function_v<T>)
  operator T*() const {
    __builtin_unreachable();
  }
  template <class T>
    requires(std::is_class_v<T> && std::is_trivially_copyable_v<T> && !is_known_to_travel<T>())
  operator T() const {
    __builtin_unreachable();
  }
};
/// Converts to nothing: it initialises only what takes any type.
struct any_other {};

template <class T, std::size_t... Before>
consteval bool address_behind(std::index_sequence<Before...>) {
  return requires { T{field_at<Before>()..., any_address()}; } &&
         !requires { T{field_at<Before>()..., any_other()}; };
}

template <class T>
consteval bool takes_address() {
  constexpr std::size_t members = braced_count<T>();
  if constexpr (members > braced_max) {
    return false;
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (address_behind<T>(std::make_index_sequence<I>()) || ...);
    }(std::make_index_sequence<members>());
  }
}

/// True for iterators over elements that lie somewhere in memory, such as the nodes of a set. Such
/// an iterator holds an address; one that makes its elements may not.
template <class T>
concept iterates_over_memory = std::input_or_output_iterator<T> &&
                               (std::is_lvalue_reference_v<std::iter_reference_t<T>> ||
                                !std::is_void_v<typename std::iterator_traits<T>::pointer>);

/// True for views of elements that lie elsewhere. Of the views that outlive what they were made of,
/// only some make their elements, and refer to nothing (std::views::iota).
template <class T>
concept views_memory =
    std::ranges::enable_view<T> && !(std::ranges::enable_borrowed_range<T> && requires(T& t) {
      requires !iterates_over_memory<decltype(t.begin())>;
    });

template <class T>
consteval bool holds_address() {
  if constexpr (std::is_pointer_v<T>) {
    return !std::is_function_v<std::remove_pointer_t<T>>;
  } else if constexpr (!std::is_class_v<T> || std::is_empty_v<T> ||
                       !std::is_trivially_copyable_v<T>) {
    // Values that own memory are marshalled, by rules of their own.
    return false;
  } else if constexpr (iterates_over_memory<T> || views_memory<T>) {
    return true;
  } else if constexpr (std::is_aggregate_v<T> && !std::is_copy_assignable_v<T> &&
                       !requires { T{}; }) {
    // A member is a reference, or may contain one.
    return true;
  } else if constexpr (std::is_aggregate_v<T>) {
    if constexpr (!takes_address<T>()) {
      return false;
    } else if constexpr (has_base<T> || field_count<T>() == 0) {
      return true;
    } else {
      // The test above leaves out inner braces, so it may have put the address into a member that
      // was declared to travel: look at the members.
      return []<class... M>(type_list<M...>*) {
        return ((has_address<M> && !is_known_to_travel<M>()) || ...);
      }(static_cast<field_types<T>*>(nullptr));
    }
  } else {
    return false;
  }
}

/// has_address, or true because T may hold a reference: a lambda with captures, or another class
/// that cannot be assigned to.
template <class T>
inline constexpr bool may_have_address =
    has_address<T> || (std::is_class_v<T> && std::is_trivially_copyable_v<T> &&
                       !std::is_empty_v<T> && !std::is_copy_assignable_v<T>);
template <class A, class B>
inline constexpr bool may_have_address<std::pair<A, B>> =
    may_have_address<A> || may_have_address<B>;
template <class... T>
inline constexpr bool may_have_address<std::tuple<T...>> = (may_have_address<T> || ...);
template <class T, std::size_t N>
inline constexpr bool may_have_address<std::array<T, N>> = may_have_address<T>;
template <class T>
inline constexpr bool may_have_address<std::optional<T>> = may_have_address<T>;
template <class... T>
inline constexpr bool may_have_address<std::variant<T...>> = (may_have_address<T> || ...);

/// True for a class that travels, whose members nobody sees, and which may have an address among
/// them. Checked mode looks at the values that leave.
template <class T>
inline constexpr bool may_hide_address =
    std::is_class_v<T> && std::is_trivially_copyable_v<T> && !std::is_aggregate_v<T> &&
    sizeof(T) >= sizeof(void*) && is_known_to_travel<T>();
template <class T>
inline constexpr bool may_hide_address<std::optional<T>> = false;
template <class... T>
inline constexpr bool may_hide_address<std::tuple<T...>> = false;
template <class... T>
inline constexpr bool may_hide_address<std::variant<T...>> = false;

}  // namespace sojourn::detail
