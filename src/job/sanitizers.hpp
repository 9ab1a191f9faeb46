// SPDX-License-Identifier: Apache-2.0
// Sanitizers that the program was built for, and this library was not.
#pragma once

namespace sojourn::detail {

/// Errors: sojourn::error when there is one. It does not know of stacks that move, and would report
/// mistakes that are none.
void refuse_sanitizer_of_program_alone();

}  // namespace sojourn::detail
