// SPDX-License-Identifier: Apache-2.0
// What ranks that ended well have told of the whole job: which entries of SOJOURN_VIA matched
// nothing, where they forked, and where they called objects of other ranks. In a job on several
// hosts each agent passes on that of its ranks, and the head adds it up.
#pragma once

#include <string>
#include <vector>

#include "job/segment.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::detail {

struct told_of_job {
  struct fork_place {
    fork_site_told told;
    std::string place;  ///< "`search` (uts.cpp:31)"
  };
  struct call_place {
    call_place_told told;
    std::string place;
  };
  std::vector<setting_use> settings;  ///< In the order of SOJOURN_VIA.
  std::vector<fork_place> forks;
  std::vector<call_place> calls;
};

/// What ranks of this host have told.
told_of_job told_by(const job_segment& job, const launch_plan& plan);
void add(told_of_job& sum, const told_of_job& more);

/// A line for each entry of SOJOURN_VIA that did nothing, which is a mistake, as a rule.
std::string text_of_unmatched(const std::vector<setting_use>& settings);
/// The place that forked most comes first.
std::vector<fork_figures> figures_of(const std::vector<told_of_job::fork_place>& forks);
/// The place that called most comes first.
std::vector<call_figures> figures_of(const std::vector<told_of_job::call_place>& calls);

}  // namespace sojourn::detail
