// SPDX-License-Identifier: Apache-2.0
// Names of variables in frames, when this build can read debug information.
#pragma once

#include <cstdint>
#include <string>

#if __has_include("base/debug_info.hpp")
#include "base/debug_info.hpp"
#endif

namespace sojourn::detail {

/// The variable whose bytes lie `offset_from_cfa` from the canonical frame address of the function
/// at `code`, which stands inside its call; "" when that is not known.
inline std::string variable_name([[maybe_unused]] std::uint64_t code,
                                 [[maybe_unused]] std::int64_t offset_from_cfa) {
#if __has_include("base/debug_info.hpp")
  return variable_at("/proc/self/exe", code, offset_from_cfa);
#else
  return {};
#endif
}

}  // namespace sojourn::detail
