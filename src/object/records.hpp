// SPDX-License-Identifier: Apache-2.0
// The records of objects that checked mode keeps (sojourn/detail/checked.hpp has what templates
// call).
#pragma once

namespace sojourn::detail {

/// Register the handlers of this floor.
void attach_records();

}  // namespace sojourn::detail
