// SPDX-License-Identifier: Apache-2.0
// What a sentence ends with that blames this machine or its limits: where more is to be learnt.
#pragma once

namespace sojourn::detail {

inline constexpr const char* doctor_hint = "; `sojourn doctor` checks all that a job needs here";

}  // namespace sojourn::detail
