// SPDX-License-Identifier: Apache-2.0
// Copies without a function call when there are 8 bytes, the length of most arguments and results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sojourn::detail {

inline void copy_short(void* to, const void* from, std::size_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace sojourn::detail
