// SPDX-License-Identifier: Apache-2.0
// Text that came from outside (arguments, settings, names of files, what a dying process left) as
// it may be shown: control characters in it would move the cursor of a terminal, or worse.
#pragma once

#include <string>
#include <string_view>

namespace sojourn::detail {

/// `text` with control characters but newlines and tabs, and bytes that are not UTF-8, as "\x1b".
std::string printable(std::string_view text);

/// The same in place, with '?' for each such control character below 0x80; async-signal-safe.
void make_printable(char* text);

}  // namespace sojourn::detail
