// SPDX-License-Identifier: Apache-2.0
// Remote calls: results and exceptions on their way home, functions by index, collectives, finish
// scopes, bulk transfers. This header is what the job floor needs of them; the rest is public.
#pragma once

namespace sojourn::detail {

/// Register the handlers of this floor. Before any message arrives.
void attach_rpc();
void attach_collectives();
void attach_scopes();
void attach_bulk();
/// Finds the program's table of functions. Throws sojourn::error when it was linked without one.
void attach_functions();

}  // namespace sojourn::detail
