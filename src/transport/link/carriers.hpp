// SPDX-License-Identifier: Apache-2.0
// What carries messages between the hosts of a job.
#pragma once

#include <memory>

#include "transport/link/socket_link.hpp"

namespace sojourn::detail {

enum class carrier { tcp, ucx };

/// What SOJOURN_NET says, or tcp. Throws sojourn::error when that is no network.
carrier carrier_of_job();

/// Whether what hosts send each other is to be encrypted: what SOJOURN_ENCRYPT says, or false.
/// Throws sojourn::error when that is neither on nor off, or the carrier does not encrypt.
bool encrypts_job();

/// A link over it, for the rank of this number. Throws sojourn::error where there can be none.
std::unique_ptr<socket_link> make_link(carrier by, int me, std::unique_ptr<socket_source> source);

}  // namespace sojourn::detail
