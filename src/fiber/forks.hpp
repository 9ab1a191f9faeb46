// SPDX-License-Identifier: Apache-2.0
// How children are run: in place until they block, or each on a stack of its own.
#pragma once

#include "sojourn/detail/forked.hpp"

namespace sojourn::detail {

/// Reads SOJOURN_EXECUTION. Throws sojourn::error when it names no way.
void attach_forks();

}  // namespace sojourn::detail
