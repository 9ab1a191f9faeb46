// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sojourn::detail {

/// The devices of this host that read and write other hosts' memory (InfiniBand, RoCE), by name.
std::string rdma_devices();

}  // namespace sojourn::detail
