// SPDX-License-Identifier: Apache-2.0
// What we use of pmix.h, in the form that versions 3 to 5 of the library have (PMIx Standard 4.1,
// chapters 3 and 6).
#pragma once

#include <cstdint>

namespace sojourn::detail::pmix {

using scope = std::uint8_t;
inline constexpr scope scope_global = 3;
inline constexpr std::uint32_t every_rank = UINT32_MAX - 1;

struct proc {
  char space[256];
  std::uint32_t number;
};

inline constexpr std::uint16_t type_bool = 1;
inline constexpr std::uint16_t type_string = 3;
inline constexpr std::uint16_t type_uint32 = 14;

struct value {
  std::uint16_t type;
  union {
    bool flag;
    char* text;
    std::uint32_t number;
    char* longest[3];
  } data;
};

struct info {
  char key[512];
  std::uint32_t flags;
  value content;
};

}  // namespace sojourn::detail::pmix
