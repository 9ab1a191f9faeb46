// SPDX-License-Identifier: Apache-2.0
// The transport of this build's ranks: the only file outside `shm` that says which it is.
#pragma once

#include "transport/shm_transport.hpp"

namespace sojourn::detail {

/// Named by its final class, so that its short functions are inlined. Only functions of the
/// contract (transport.hpp) are used.
using active_transport = shm::shm_transport;

}  // namespace sojourn::detail
