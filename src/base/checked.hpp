// SPDX-License-Identifier: Apache-2.0
// Checked mode: whether it is on, and which functions the user excuses.
#pragma once

#include <string_view>

namespace sojourn::detail {

/// Reads SOJOURN_CHECKED and SOJOURN_ALLOW. Throws sojourn::error. Requires: the worker thread does
/// not run yet.
void attach_checked();

/// True when SOJOURN_ALLOW=function:reason names `function`, in full or by its last components
/// (`walk` for `tree::walk`).
bool is_excused(std::string_view function);

}  // namespace sojourn::detail
