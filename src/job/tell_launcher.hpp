// SPDX-License-Identifier: Apache-2.0
// What a rank that has done its part adds, in the job's memory, to what the launcher tells at the
// end of the job: what settings matched, where it forked, and where it called objects of others.
#pragma once

#include "job/segment.hpp"

namespace sojourn::detail {

void tell_launcher(job_segment& segment);

}  // namespace sojourn::detail
