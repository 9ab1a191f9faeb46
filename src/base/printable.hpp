// SPDX-License-Identifier: Apache-2.0
// Makes text from outside (arguments, settings, names of files, what a dying process left) fit to
// be shown: control characters in it would move the cursor of a terminal, or worse.
#pragma once

#include <string>
#include <string_view>

namespace sojourn::detail {

/// `text`, with "\x1b" for control characters other than newline and tab, and for bytes that are
/// not UTF-8.
std::string printable(std::string_view text);

/// Replaces the control characters below 0x80 by '?', in place; async-signal-safe.
void make_printable(char* text);

}  // namespace sojourn::detail
