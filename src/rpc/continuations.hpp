// SPDX-License-Identifier: Apache-2.0
// Continuations (sojourn/continuation.hpp) that are destroyed without a reply.
#pragma once

namespace sojourn::detail {

/// From now on nobody waits for an answer: continuations among the program's variables are
/// destroyed at its exit, which is not an error.
void end_continuations();

}  // namespace sojourn::detail
