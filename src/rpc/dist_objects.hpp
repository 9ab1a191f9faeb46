// SPDX-License-Identifier: Apache-2.0
// The dist_objects of this rank. A key contains the number of the object among those of its name,
// so that each rank knows, without asking, whether an object is still to come or has gone.
#pragma once

namespace sojourn::detail {

/// Why a checkpoint cannot be made because of this rank's dist_objects; null: it can. (Objects
/// outside of memory that is saved are made again.)
const char* unsaved_dist_object(bool (*is_saved)(const void* object));

}  // namespace sojourn::detail
