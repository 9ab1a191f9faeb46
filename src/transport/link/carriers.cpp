// SPDX-License-Identifier: Apache-2.0
#include "transport/link/carriers.hpp"

#include <cstdlib>
#include <string_view>

#include "base/check.hpp"
#include "base/printable.hpp"
#include "sojourn/errors.hpp"
#include "transport/link/tcp/stream_link.hpp"
#include "transport/link/ucx/ucx_link.hpp"

namespace sojourn::detail {

carrier carrier_of_job() {
  const char* text = std::getenv("SOJOURN_NET");
  if (text == nullptr || std::string_view(text) == "tcp") return carrier::tcp;
  if (std::string_view(text) == "ucx") return carrier::ucx;
  throw error("--net is tcp or ucx, not '" + printable(text) + "'");
}

bool encrypts_job() {
  const char* text = std::getenv("SOJOURN_ENCRYPT");
  const std::string_view set = text != nullptr ? text : "off";
  if (set == "off") return false;
  if (set != "on") throw error("SOJOURN_ENCRYPT=" + printable(text) + " is neither on nor off");
  if (carrier_of_job() == carrier::ucx)
    throw error("--encrypt is for TCP, and UCX does not encrypt: leave --net=ucx out");
  return true;
}

std::unique_ptr<socket_link> make_link(carrier by, int me, std::unique_ptr<socket_source> source) {
  if (by == carrier::tcp) {
    // If this host cannot encrypt, this throws now, and not at the first connection, in the middle
    // of the job.
    if (encrypts_job()) (void)seal({}, seal::direction::out);
    return std::make_unique<tcp::stream_link>(std::move(source));
  }
  std::string why_not;
  auto made = ucx::make_link(me, std::move(source), why_not);
  if (made == nullptr) {
    throw error("--net=ucx: UCX cannot be used on this host: " + why_not +
                "; install it on each host (Debian: libucx0), or leave --net and SOJOURN_NET out");
  }
  return made;
}

}  // namespace sojourn::detail
