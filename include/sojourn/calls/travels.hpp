// SPDX-License-Identifier: Apache-2.0
// Which values may travel between ranks: those whose bytes mean the same on every rank.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "sojourn/detail/addresses.hpp"

namespace sojourn {

/// True for types whose bytes may be copied to another rank: trivially copyable ones that, as far
/// as the type tells, hold no address of private memory. So no pointers and references, no views
/// such as std::span and std::string_view, no iterators but those that make their elements, and no
/// aggregates of at most 48 elements with one of these. It does not see private members of a class,
/// at which checked mode looks when they leave, nor members of unions. Specialise it as `true` for
/// a type of your own that may travel although it has a copy constructor or holds an address that
/// means the same on every rank; structs that hold such a type then travel, too.
template <class T>
inline constexpr bool travels =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_reference_v<T> &&
    !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T> && !detail::has_address<T>;

template <class T>
consteval bool detail::is_known_to_travel() {
  return travels<T>;
}

template <class T>
inline constexpr bool travels<const T> = travels<T>;
template <>
inline constexpr bool travels<void> = true;
template <class A, class B>
inline constexpr bool travels<std::pair<A, B>> = travels<A> && travels<B>;
template <class... T>
inline constexpr bool travels<std::tuple<T...>> = (travels<T> && ...);
template <class T>
inline constexpr bool travels<std::optional<T>> = travels<T>;
template <class T, std::size_t N>
inline constexpr bool travels<std::array<T, N>> = travels<T>;
template <class T, std::size_t N>
inline constexpr bool travels<T[N]> = travels<T>;
template <class... T>
inline constexpr bool travels<std::variant<T...>> = (travels<T> && ...);

}  // namespace sojourn
