// SPDX-License-Identifier: Apache-2.0
// Texts of any length in rooms that are limited: messages, and what a dying process leaves. Where a
// text is too long, "..." stands in place of its end, after a whole character (UTF-8).
// put_text (sojourn/errors.hpp) writes one that is there.
#pragma once

#include <cstdarg>
#include <cstddef>

#include "sojourn/errors.hpp"

namespace sojourn::detail {

/// snprintf: `room` counts the NUL at the end.
[[gnu::format(printf, 3, 4)]] void print_text(char* to, std::size_t room, const char* format, ...);
[[gnu::format(printf, 3, 0)]] void vprint_text(char* to, std::size_t room, const char* format,
                                               va_list arguments);

}  // namespace sojourn::detail
