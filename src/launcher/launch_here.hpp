// SPDX-License-Identifier: Apache-2.0
// What plan_launch() and launch() do, for the ranks of this host alone in a job of several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/files.hpp"
#include "job/segment.hpp"
#include "memory/address_map.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::detail {

class other_hosts;

/// `here`: the ranks of this host; all, where there are none.
launch_plan plan_on_host(launch_options options, std::optional<ranks_of_host> here);

/// Runs the ranks of this host. `elsewhere`: null when there are no others.
launch_result launch_here(const launch_plan& plan, other_hosts* elsewhere);

/// Checks of the checkpoint `options.restore`, whose set is `set`, what can be checked before any
/// rank runs; the ranks check the rest. Throws sojourn::error.
void check_restore(const launch_options& options, const checkpoint_set& set);
/// The runtime's tables lie behind what depends on how many ranks each host has. `wrote`, `now`: as
/// --hosts takes them.
[[noreturn]] void refuse_other_hosts(const std::string& path, const std::string& wrote,
                                     const std::string& now);

/// Writes to the segment from where the ranks go on, and by how much their clock is ahead of this
/// host's.
void go_on_from(job_segment& job, const std::string& path, const checkpoint_set& set,
                std::uint64_t ahead_ns);

}  // namespace sojourn::detail
