// SPDX-License-Identifier: Apache-2.0
// Functions of the program by index. The linker already builds a sorted table of every function's
// address for the unwinder (.eh_frame_hdr, Linux Standard Base 5.0, §10.6.2); an index into it is
// the same in all ranks of one program, needs no registration, and is bounds-checked, so no
// address from the wire is ever called.
#pragma once

namespace sojourn::detail {

/// Finds the program's table of functions. Throws sojourn::error when it was linked without one.
void attach_functions();

}  // namespace sojourn::detail
