// SPDX-License-Identifier: Apache-2.0
// Which values may be arguments and results of remote calls.
#pragma once

#include "sojourn/calls/travels.hpp"
#include "sojourn/calls/view.hpp"
#include "sojourn/detail/codec.hpp"

namespace sojourn {

/// True for types that remote calls take and return. Types that travel (travels.hpp) are copied as
/// bytes, straight into the message. The following are marshalled, with all that they own:
///
/// - std::string, vector, array, pair, tuple, optional, variant, unique_ptr, and containers such as
///   list, deque, map, set and their unordered kinds;
/// - aggregates without base classes of at most 16 such members;
/// - types with a `serialize`, `save` and `load`, or `save_minimal` and `load_minimal`, as cereal
///   wants them: members or functions beside the type. A program that has no other use for cereal
///   need not include it.
/// - view<T>, std::span<const T> and std::string_view, as arguments: they are read in place.
///
/// Raw pointers, references and shared_ptr cannot be marshalled: what they refer to is private to a
/// rank.
template <class T>
inline constexpr bool marshals =
    detail::can_marshal<detail::marshal_for::call, std::remove_cv_t<T>>();
template <>
inline constexpr bool marshals<void> = true;

/// Specialise it as true for a class that has a `serialize`, and whose objects are to stay where
/// they were made all the same: via::cache and via::fetch then call them there.
template <class T>
inline constexpr bool stays_on_its_rank = false;

namespace detail {

/// What is still good when the call is over: holds nothing that is read in place.
template <class T>
inline constexpr bool marshals_to_stay = can_marshal<marshal_for::stay, std::remove_cv_t<T>>();
template <>
inline constexpr bool marshals_to_stay<void> = true;
/// A copy can be made of the value, which stays.
template <class T>
inline constexpr bool marshals_copies = can_marshal<marshal_for::copy, std::remove_cv_t<T>>();

}  // namespace detail
}  // namespace sojourn
