// SPDX-License-Identifier: Apache-2.0
// The end of messages that blame this machine or its limits: tells the user where to learn more.
#pragma once

namespace sojourn::detail {

inline constexpr const char* doctor_hint = "; `sojourn doctor` checks all that a job needs here";

}  // namespace sojourn::detail
