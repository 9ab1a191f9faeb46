// SPDX-License-Identifier: Apache-2.0
// The members of an aggregate: counted by trying how many initialisers it takes, and reached by a
// structured binding. As Boost.PFR does it, for C++20 and up to 16 members.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace sojourn::detail {

inline constexpr std::size_t fields_max = 16;
// The most initialisers of an aggregate; each element of an array member counts.
inline constexpr std::size_t braced_max = 48;

/// Stands for a member's initialiser where nothing is evaluated. The conversion is defined, because
/// clang wants that when the type of a member has no linkage.
struct any_field {
  template <class T>
  operator T() const {
    __builtin_unreachable();
  }
};
/// Converts only to a base class of Derived.
template <class Derived>
struct any_base {
  template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
  operator T() const {
    __builtin_unreachable();
  }
};

template <std::size_t>
using field_at = any_field;

template <class T, std::size_t... I>
consteval bool takes_fields(std::index_sequence<I...>) {
  return requires { T{field_at<I>()...}; };
}
/// True when T takes the initialisers `Before`, then a member in braces with `Inner`, then `After`.
template <class T, std::size_t... Before, std::size_t... Inner, std::size_t... After>
consteval bool takes_array(std::index_sequence<Before...>, std::index_sequence<Inner...>,
                           std::index_sequence<After...>) {
  return requires { T{field_at<Before>()..., {field_at<Inner>()...}, field_at<After>()...}; };
}

/// How many initialisers fill an aggregate when the braces of arrays are left out.
template <class T, std::size_t N = braced_max + 1>
consteval std::size_t braced_count() {
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return braced_count<T, N - 1>();
  }
}

/// How many of these initialisers the member at `Position` takes: more than one if it is an array.
template <class T, std::size_t All, std::size_t Position, std::size_t Length>
consteval std::size_t length_at() {
  if constexpr (Length < 2) {
    return 1;
  } else {
    constexpr std::size_t after = All - Position - Length;
    using before = std::make_index_sequence<Position>;
    using inner = std::make_index_sequence<Length>;
    if constexpr (takes_array<T>(before{}, inner{}, std::make_index_sequence<after>{}) &&
                  !takes_array<T>(before{}, inner{}, std::make_index_sequence<after + 1>{})) {
      return Length;
    } else {
      return length_at<T, All, Position, Length - 1>();
    }
  }
}

template <class T, std::size_t All, std::size_t Position = 0>
consteval std::size_t count_members() {
  if constexpr (Position >= All) {
    return 0;
  } else {
    return 1 + count_members<T, All, Position + length_at<T, All, Position, All - Position>()>();
  }
}

template <class T>
inline constexpr bool has_base = requires { T{any_base<T>()}; };

/// The number of members of an aggregate without base classes; 0 when there are too many.
template <class T>
consteval std::size_t field_count() {
  constexpr std::size_t braced = braced_count<T>();
  if constexpr (braced > braced_max) {
    return 0;
  } else {
    constexpr std::size_t members = count_members<T, braced>();
    return members <= fields_max ? members : 0;
  }
}

/// Calls visit(member…) with the members of `v`, in their order.
template <class T, class Visit>
constexpr decltype(auto) with_fields(T& v, Visit&& visit) {
  constexpr std::size_t n = field_count<std::remove_cv_t<T>>();
#define SOJOURN_FIELDS(COUNT, ...) \
  else if constexpr (n == COUNT) { \
    auto& [__VA_ARGS__] = v;       \
    return visit(__VA_ARGS__);     \
  }
  if constexpr (n == 0) {
    return visit();
  }
  SOJOURN_FIELDS(1, a)
  SOJOURN_FIELDS(2, a, b)
  SOJOURN_FIELDS(3, a, b, c)
  SOJOURN_FIELDS(4, a, b, c, d)
  SOJOURN_FIELDS(5, a, b, c, d, e)
  SOJOURN_FIELDS(6, a, b, c, d, e, f)
  SOJOURN_FIELDS(7, a, b, c, d, e, f, g)
  SOJOURN_FIELDS(8, a, b, c, d, e, f, g, h)
  SOJOURN_FIELDS(9, a, b, c, d, e, f, g, h, i)
  SOJOURN_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
  SOJOURN_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
  SOJOURN_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  SOJOURN_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  SOJOURN_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, o)
  SOJOURN_FIELDS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p)
  SOJOURN_FIELDS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q)
#undef SOJOURN_FIELDS
}

template <class... T>
struct type_list {};

/// The types of the members, as they are declared.
template <class T>
using field_types =
    decltype(with_fields(std::declval<T&>(), []<class... F>(F&...) { return type_list<F...>(); }));

}  // namespace sojourn::detail
