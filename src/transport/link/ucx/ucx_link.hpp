// SPDX-License-Identifier: Apache-2.0
// A link over UCX (https://openucx.org), the library by which programs of this field use InfiniBand
// and RoCE. It sends active messages, long ones by rendezvous. The sockets to the ranks carry the
// addresses of UCX's workers and, at the end, the word that everything has come.
//
// UCX is loaded only when a job asks for it, because anybody who reaches a port that UCX has opened
// for its TCP can write to the memory of the process (docs/trust.md).
#pragma once

#include <memory>
#include <string>

#include "transport/link/socket_link.hpp"

namespace sojourn::detail::ucx {

/// Returns null, with `why_not`, when UCX cannot be used: this library was built without it, or it
/// is not installed here, or it finds no network. `me`: the number of this rank.
std::unique_ptr<socket_link> make_link(int me, std::unique_ptr<socket_source> source,
                                       std::string& why_not);

/// The version of UCX that would be used, such as "1.13.1"; "", with `why_not`, when there is none.
std::string version(std::string& why_not);

}  // namespace sojourn::detail::ucx
