// SPDX-License-Identifier: Apache-2.0
// Credentials of munge, the service by which Slurm knows users, for a secret that only processes of
// this user can read, on any host that has the cluster's key.
#pragma once

#include <optional>
#include <string>

#include "hosts/proof.hpp"

namespace sojourn::detail {

/// None where this host has no munge, or its service does not answer.
std::optional<std::string> munge_encode(const job_secret& secret);

/// Throws sojourn::error, also where another user has made the credential.
job_secret munge_decode(const std::string& credential);

}  // namespace sojourn::detail
