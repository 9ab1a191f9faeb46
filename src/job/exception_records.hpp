// SPDX-License-Identifier: Apache-2.0
// Libraries that have a C++ runtime of their own, and with it a record of the exceptions that a
// thread handles, beside the one of this program.
#pragma once

namespace sojourn::detail {

/// Each fiber has a record of the exceptions that it handles, which takes the place of the thread's
/// in this program's C++ runtime. A library with a C++ runtime of its own (libstdc++.so) must use
/// the same record: two fibers in its catch blocks would mix their exceptions otherwise.
/// Throws sojourn::error where a library has another record.
void refuse_second_exception_record();

}  // namespace sojourn::detail
