// SPDX-License-Identifier: Apache-2.0
// How the checks of the applications compare a result with what a reference computed.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace apps::nine {

/// Says how many values of `result` are further than `tolerance` from those of `expected`, which of
/// them is the furthest and by how much; empty when none is. A NaN is infinitely far from anything.
/// Both are arrays of the dimensions `extents`, the last of which varies fastest; `what` is the
/// result's name.
std::string difference(std::string_view what, std::initializer_list<std::size_t> extents,
                       std::span<const double> result, std::span<const double> expected,
                       double tolerance);

}  // namespace apps::nine
