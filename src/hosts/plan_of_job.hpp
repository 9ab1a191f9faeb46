// SPDX-License-Identifier: Apache-2.0
// The plan that a job's head makes: what the agents of all hosts are told to run, in which folder,
// with which settings, and from which checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hosts/checkpoint_parts.hpp"
#include "hosts/plan_record.hpp"
#include "sojourn/jobs/hosts.hpp"

namespace sojourn::detail {

/// Where the ranks run, on all hosts.
std::string own_folder();

class plan_of_job {
 public:
  /// `options` stay as long as this is used.
  explicit plan_of_job(const hosts_options& options);

  /// Chooses the checkpoint to go on from by what each host has of it. Throws sojourn::error where
  /// the job cannot go on from there.
  void restore(const std::vector<parts_of_host>& hosts);

  host_plan for_host(ranks_of_host here) const;

 private:
  const hosts_options& options_;
  std::uint64_t canary_;
  checkpoint_set restored_;
  std::uint64_t restored_ahead_ns_ = 0;
};

}  // namespace sojourn::detail
