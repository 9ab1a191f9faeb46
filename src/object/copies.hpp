// SPDX-License-Identifier: Apache-2.0
// Coherent copies of objects, and objects that move.
#pragma once

namespace sojourn::detail {

/// Registers handlers and hooks. Throws sojourn::error when SOJOURN_CACHE_BYTES is wrong.
void attach_copies();
/// Brings the objects that were made here, and are on other ranks, home. False when one cannot
/// leave. Suspends. Requires: no fiber runs that would fetch them again.
bool bring_objects_home();
/// `rank` has ended, and all that it sent has been read.
void fail_copies_of(int rank);

}  // namespace sojourn::detail
