// SPDX-License-Identifier: Apache-2.0
// What carries messages between the hosts of a job.
#pragma once

#include <memory>

#include "transport/link/socket_link.hpp"

namespace sojourn::detail {

enum class carrier { tcp, ucx };

/// The network that SOJOURN_NET names, or tcp. Throws sojourn::error when it names none.
carrier carrier_of_job();

/// Whether messages between hosts are to be encrypted: what SOJOURN_ENCRYPT says, or false. Throws
/// sojourn::error when it says neither on nor off, or the carrier does not encrypt.
bool encrypts_job();

/// A link over this carrier, for the rank `me`. Throws sojourn::error when there can be none.
std::unique_ptr<socket_link> make_link(carrier by, int me, std::unique_ptr<socket_source> source);

}  // namespace sojourn::detail
