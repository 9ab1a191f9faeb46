// SPDX-License-Identifier: Apache-2.0
// Why a thread is not moved, or not found.
#pragma once

#include "migrate/gate.hpp"
#include "sojourn/threads/thread.hpp"

namespace sojourn::detail {

// The texts are literals, at the same addresses in all ranks of this program: a rank may send the
// address of one.
inline constexpr stay_reason moved{thread_refusal::none, ""};
inline constexpr stay_reason waits_here{thread_refusal::waits_here,
                                        "it waits for something that only its rank can provide"};
inline constexpr stay_reason has_finished{thread_refusal::finished, "the thread has ended"};
inline constexpr stay_reason is_unknown{
    thread_refusal::unknown,
    "there is no such thread: it was joined, has ended after detach, or never existed"};
inline constexpr stay_reason runs_other{thread_refusal::other_program,
                                        "the rank runs another program"};

/// The error for a thread that was to move to `to`.
thread_error refusal(const stay_reason& why, int to);
[[noreturn]] void refuse(const stay_reason& why, int to);

}  // namespace sojourn::detail
