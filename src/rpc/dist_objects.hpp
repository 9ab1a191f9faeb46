// SPDX-License-Identifier: Apache-2.0
// The dist_objects of this rank. A key says how many objects were made before under its name, so
// that each rank knows, without asking, whether one is still to come or has gone.
#pragma once

namespace sojourn::detail {

/// What a checkpoint would lose of this rank's dist_objects; null: nothing. Those outside of what
/// is saved are made again.
const char* unsaved_dist_object(bool (*is_saved)(const void* object));

}  // namespace sojourn::detail
