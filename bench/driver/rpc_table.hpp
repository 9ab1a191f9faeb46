// SPDX-License-Identifier: Apache-2.0
//
// Table 8 of Chang, Czajkowski and von Eicken: what a call's time consists of.
#pragma once

#include "driver/report.hpp"
#include "driver/worker.hpp"

namespace bench {

struct settings;

/// `unshared` is the same job with SOJOURN_SHARE=off.
void add_call_table(report& result, worker& ours, worker& unshared, const settings& chosen);

}  // namespace bench
