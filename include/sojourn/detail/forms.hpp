// SPDX-License-Identifier: Apache-2.0
// The form of a type: in which of a few ways its values are written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sojourn/calls/travels.hpp"
#include "sojourn/calls/view.hpp"
#include "sojourn/detail/archive.hpp"
#include "sojourn/detail/cereal.hpp"
#include "sojourn/detail/fields.hpp"
#include "sojourn/detail/is_a.hpp"

namespace sojourn::detail {

/// A range that is read in place: a view, a span of constant elements or a string_view.
template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<view<T>> = true;
template <class T>
inline constexpr bool is_view<std::span<const T>> = true;
template <class C>
inline constexpr bool is_view<std::basic_string_view<C>> = true;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

enum class form : std::uint8_t {
  none,  ///< It cannot be marshalled.
  view,
  bytes,
  boolean,
  contiguous,  ///< A count, and the elements: in one block when they are bytes.
  sequence,
  map,
  set,
  optional,
  variant,
  tuple,
  array,
  owner,  ///< unique_ptr.
  user,
  fields
};

/// Containers are recognised by their members, not by name, so that containers of other libraries
/// than the standard one work, too.
template <class T>
concept map_like = requires(T& t, typename T::key_type& k, typename T::mapped_type& m) {
  typename T::allocator_type;
  requires std::is_same_v<typename T::value_type,
                          std::pair<const typename T::key_type, typename T::mapped_type>>;
  t.emplace_hint(t.end(), std::move(k), std::move(m));
};
template <class T>
concept set_like = requires(T& t, typename T::key_type& k) {
  typename T::allocator_type;
  requires std::is_same_v<typename T::value_type, typename T::key_type>;
  t.emplace_hint(t.end(), std::move(k));
};
template <class T>
concept sequence_like = requires(T& t, typename T::value_type& v) {
  typename T::allocator_type;
  requires !std::is_same_v<typename T::value_type, T>;
  t.push_back(std::move(v));
  t.size();
  t.clear();
};

template <class T>
inline constexpr bool is_contiguous = is_a<T, std::vector> || is_a<T, std::basic_string>;

/// True for values that are a right: no copy with the same right may stay behind. They are moved
/// into a message, or saved once it is certain that the message goes.
template <class T>
inline constexpr bool leaves_by_move = false;

/// True for types that are written as their bytes. Not for bool, optional and variant: bytes that
/// arrive might be no value of such a type.
template <class T>
inline constexpr bool is_bytes = travels<T> && !leaves_by_move<T> && !is_a<T, std::optional> &&
                                 !is_a<T, std::variant> && !std::is_same_v<T, bool>;
template <class A, class B>
inline constexpr bool is_bytes<std::pair<A, B>> = is_bytes<A> && is_bytes<B>;
template <class... T>
inline constexpr bool is_bytes<std::tuple<T...>> = (is_bytes<T> && ...);
template <class T, std::size_t N>
inline constexpr bool is_bytes<std::array<T, N>> = is_bytes<T>;
template <class T, std::size_t N>
inline constexpr bool is_bytes<T[N]> = is_bytes<T>;

template <class T>
consteval form form_of() {
  if constexpr (is_view<T>) {
    return form::view;
  } else if constexpr (std::is_same_v<T, bool>) {
    return form::boolean;
  } else if constexpr (is_bytes<T>) {
    return form::bytes;
  } else if constexpr (is_a<T, std::optional>) {
    return form::optional;
  } else if constexpr (is_a<T, std::variant>) {
    return form::variant;
  } else if constexpr (is_a<T, std::pair> || is_a<T, std::tuple> || is_std_array<T>) {
    return form::tuple;
  } else if constexpr (std::is_bounded_array_v<T>) {
    return form::array;
  } else if constexpr (is_a<T, std::unique_ptr>) {
    return form::owner;
  } else if constexpr (is_a<T, std::shared_ptr> || is_a<T, std::weak_ptr> ||
                       (!std::is_class_v<T> && !std::is_union_v<T>)) {
    return form::none;
  } else if constexpr (is_contiguous<T>) {
    return form::contiguous;
  } else if constexpr (constexpr annotation a = annotated<writer, reader, T>();
                       a != annotation::none && a < annotation::free_serialize) {
    return form::user;
  } else if constexpr (map_like<T>) {
    // Asked before free functions: cereal's headers have some for containers, and a program may
    // include these headers in some of its sources only.
    return form::map;
  } else if constexpr (set_like<T>) {
    return form::set;
  } else if constexpr (sequence_like<T>) {
    return form::sequence;
  } else if constexpr (annotated<writer, reader, T>() != annotation::none) {
    return form::user;
  } else if constexpr (std::is_aggregate_v<T>) {
    if constexpr (has_base<T> || field_count<T>() == 0) {
      return form::none;
    } else {
      return form::fields;
    }
  } else {
    return form::none;
  }
}

/// What a value is marshalled for.
enum class marshal_for : std::uint8_t {
  call,  ///< An argument: may be read in place, and is valid only during the call.
  stay,  ///< A value that is good when the call is over.
  copy   ///< A copy of one that stays where it is: it holds no right (leaves_by_move) either.
};

template <marshal_for What, class T, class... Seen>
consteval bool can_marshal();

template <marshal_for What, class... Seen>
struct all_marshal {
  template <class... T>
  static consteval bool of(type_list<T...>*) {
    return (can_marshal<What, std::remove_cv_t<T>, Seen...>() && ...);
  }
  template <class... T>
  static consteval bool of_variant(const std::variant<T...>*) {
    return (can_marshal<What, std::remove_cv_t<T>, Seen...>() && ...);
  }
  template <class... T>
  static consteval bool of_tuple(const std::tuple<T...>*) {
    return (can_marshal<What, std::remove_cv_t<T>, Seen...>() && ...);
  }
  template <class A, class B>
  static consteval bool of_tuple(const std::pair<A, B>*) {
    return can_marshal<What, std::remove_cv_t<A>, Seen...>() &&
           can_marshal<What, std::remove_cv_t<B>, Seen...>();
  }
  template <class T, std::size_t N>
  static consteval bool of_tuple(const std::array<T, N>*) {
    return can_marshal<What, T, Seen...>();
  }
};

/// True when values of type T can be marshalled. `Seen`: the types that contain T, which may be
/// recursive.
template <marshal_for What, class T, class... Seen>
consteval bool can_marshal() {
  if constexpr ((std::is_same_v<T, Seen> || ...)) {
    return true;
  } else {
    constexpr form f = form_of<T>();
    using inner = all_marshal<What, T, Seen...>;
    if constexpr (f == form::none || (What == marshal_for::copy && leaves_by_move<T>)) {
      return false;
    } else if constexpr (f == form::bytes || f == form::boolean) {
      return true;
    } else if constexpr (f == form::view) {
      return What == marshal_for::call && is_bytes<std::remove_cv_t<typename T::value_type>> &&
             alignof(typename T::value_type) <= 16;
    } else if constexpr (f == form::map) {
      return can_marshal<What, typename T::key_type, T, Seen...>() &&
             can_marshal<What, typename T::mapped_type, T, Seen...>();
    } else if constexpr (f == form::contiguous || f == form::sequence || f == form::set ||
                         f == form::optional) {
      return can_marshal<What, typename T::value_type, T, Seen...>();
    } else if constexpr (f == form::variant) {
      return inner::of_variant(static_cast<const T*>(nullptr));
    } else if constexpr (f == form::tuple) {
      return inner::of_tuple(static_cast<const T*>(nullptr));
    } else if constexpr (f == form::array) {
      return can_marshal<What, std::remove_extent_t<T>, Seen...>();
    } else if constexpr (f == form::owner) {
      using element = typename T::element_type;
      return std::is_same_v<T, std::unique_ptr<element>> && !std::is_array_v<element> &&
             (!std::is_polymorphic_v<element> || std::is_final_v<element>) &&
             can_marshal<What, std::remove_const_t<element>, T, Seen...>();
    } else if constexpr (f == form::user) {
      return std::is_default_constructible_v<T>;
    } else {
      return inner::of(static_cast<field_types<T>*>(nullptr));
    }
  }
}

}  // namespace sojourn::detail
