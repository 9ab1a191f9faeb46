// SPDX-License-Identifier: Apache-2.0
// What plan_launch() and launch() do, for the ranks of this host alone in a job of several.
#pragma once

#include <optional>

#include "memory/address_map.hpp"
#include "sojourn/launcher.hpp"

namespace sojourn::detail {

class other_hosts;

/// `here`: the ranks of this host; all, where there are none.
launch_plan plan_on_host(launch_options options, std::optional<ranks_of_host> here);

/// Runs the ranks of this host. `elsewhere`: null when there are no others.
launch_result launch_here(const launch_plan& plan, other_hosts* elsewhere);

}  // namespace sojourn::detail
