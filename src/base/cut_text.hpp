// SPDX-License-Identifier: Apache-2.0
// Texts of any length in limited room: messages, and what a dying process leaves. If a text is too
// long, "..." replaces its end, after a whole character (UTF-8). For a text that exists already,
// use put_text (sojourn/errors.hpp).
#pragma once

#include <cstdarg>
#include <cstddef>

#include "sojourn/errors.hpp"

namespace sojourn::detail {

/// As snprintf: `room` includes the NUL at the end.
[[gnu::format(printf, 3, 4)]] void print_text(char* to, std::size_t room, const char* format, ...);
[[gnu::format(printf, 3, 0)]] void vprint_text(char* to, std::size_t room, const char* format,
                                               va_list arguments);

}  // namespace sojourn::detail
