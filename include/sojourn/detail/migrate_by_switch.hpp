// SPDX-License-Identifier: Apache-2.0
// The second of the paper's ways to move a thread, for the benchmark that compares it with the
// first, which is migrate(self(), to). (Sang and Rego, 1993; sojourn/xthreads.h)
#pragma once

namespace sojourn::detail {

/// Moves the running thread to rank `to`: an ordinary switch suspends it, and the scheduler sends
/// it. Suspends. Errors: thread_error, as migrate().
void migrate_self_by_switch(int to);

}  // namespace sojourn::detail
