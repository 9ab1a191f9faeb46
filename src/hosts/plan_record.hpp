// SPDX-License-Identifier: Apache-2.0
// What the head tells an agent to run, and what agents tell of their ranks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hosts/record.hpp"
#include "job/segment.hpp"
#include "launcher/told.hpp"
#include "memory/address_map.hpp"
#include "observe/hang_view.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::detail {

/// Differs between builds that cannot be one job.
std::uint64_t hosts_version();

struct host_plan {
  launch_options job;
  ranks_of_host here{0, 1};
  std::uint64_t canary = 0;  ///< job_segment::secret, the same on all hosts.
  std::string folder;        ///< Where the ranks run.
  std::vector<std::pair<std::string, std::string>> settings;  ///< For their environment.
  checkpoint_set restored;              ///< Of the checkpoint `job.restore`, where there is one.
  std::uint64_t restored_ahead_ns = 0;  ///< By so much the job's clock is ahead of the head's.
};

void put(record_writer& to, const host_plan& plan);
host_plan read_host_plan(record_reader& from);

void put(record_writer& to, const watch_area::rest& rest);
watch_area::rest read_rest(record_reader& from);

void put(record_writer& to, const rank_view& rank);
rank_view read_rank_view(record_reader& from);

void put(record_writer& to, const told_of_job& told);
told_of_job read_told(record_reader& from);

void put(record_writer& to, const rank_introduction& rank);
rank_introduction read_introduction(record_reader& from);

}  // namespace sojourn::detail
