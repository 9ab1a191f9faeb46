// SPDX-License-Identifier: Apache-2.0
// Continuations (sojourn/calls/continuation.hpp) that are destroyed without a reply.
#pragma once

namespace sojourn::detail {

/// To be called when nobody waits for answers any more: continuations among the program's variables
/// are destroyed at its exit, and that is no error.
void end_continuations();

}  // namespace sojourn::detail
