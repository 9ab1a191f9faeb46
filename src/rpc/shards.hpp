// SPDX-License-Identifier: Apache-2.0
// Where the objects of each sharded (sharded.hpp) lie, as far as this rank knows.
#pragma once

namespace sojourn::detail {

void attach_shards();

}  // namespace sojourn::detail
