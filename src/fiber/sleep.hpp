// SPDX-License-Identifier: Apache-2.0
// Waking fibers whose time has come: those that sleep (sojourn/waiting/sleep.hpp), and those that
// wait for something else until that time at the latest.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Makes all pieces ready whose timer is due at `now` or before; returns how many.
int wake_due(std::uint64_t now);

}  // namespace sojourn::detail
