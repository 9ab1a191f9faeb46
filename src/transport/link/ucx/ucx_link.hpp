// SPDX-License-Identifier: Apache-2.0
// A link over UCX (https://openucx.org), the library by which programs of this field use InfiniBand
// and RoCE: active messages, rendezvous for long ones. The sockets that lead to the ranks carry the
// addresses of UCX's workers, and at the end the word that everything has come.
//
// UCX is loaded when a job wants it. Whoever reaches a port that UCX has opened for its TCP can
// write to the memory of the process (docs/trust.md): so a job uses it only where it was asked to.
#pragma once

#include <memory>
#include <string>

#include "transport/link/socket_link.hpp"

namespace sojourn::detail::ucx {

/// Null, and `why_not`, where UCX cannot be used: this library has been built without it, or it is
/// not installed here, or finds no network. `me`: the number of this rank.
std::unique_ptr<socket_link> make_link(int me, std::unique_ptr<socket_source> source,
                                       std::string& why_not);

/// The version that would be used, as "1.13.1"; "" and `why_not` when there is none.
std::string version(std::string& why_not);

}  // namespace sojourn::detail::ucx
