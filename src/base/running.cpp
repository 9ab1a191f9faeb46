// SPDX-License-Identifier: Apache-2.0
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {
exception_globals before_the_worker_starts;
}

// In one cache line: a fork reads and writes most of it.
alignas(64) running_state running{nullptr, nullptr, nullptr, &before_the_worker_starts,
                                  0,       0,       nullptr, 0};
job_view job;

}  // namespace sojourn::detail
