// SPDX-License-Identifier: Apache-2.0
#include "hosts/plan_of_job.hpp"

#include <unistd.h>

#include <climits>
#include <cstring>
#include <utility>

#include "hosts/proof.hpp"
#include "launcher/launch_here.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transport/link/carriers.hpp"

extern char** environ;

namespace sojourn::detail {

namespace {

/// The variables that ranks on all hosts get as they are here.
std::vector<std::pair<std::string, std::string>> settings_for_ranks() {
  std::vector<std::pair<std::string, std::string>> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const std::string name = text.substr(0, equals);
    const bool is_of_one_rank =
        name == rank_variable || name == job_fds_variable || name == job_name_variable;
    if (is_of_one_rank) continue;
    if (name.rfind("SOJOURN_", 0) == 0 || name.rfind("UCX_", 0) == 0 || name == "PATH" ||
        name == "LD_LIBRARY_PATH")
      all.emplace_back(name, text.substr(equals + 1));
  }
  // All must do so, or none, whatever their shells say.
  if (!encrypts_job()) all.emplace_back("SOJOURN_ENCRYPT", "off");
  return all;
}

}  // namespace

std::string own_folder() {
  char folder[PATH_MAX];
  return getcwd(folder, sizeof folder) != nullptr ? folder : "/";
}

plan_of_job::plan_of_job(const hosts_options& options) : options_(options) {
  const nonce drawn = new_nonce();
  std::memcpy(&canary_, drawn.data(), sizeof canary_);
  canary_ = canary_of(canary_);
}

void plan_of_job::restore(const std::vector<parts_of_host>& hosts) {
  const std::string& path = options_.job.restore;
  const checkpoint_parts& chosen = set_to_restore(path, hosts);
  restored_ = *chosen.set;
  check_restore(options_.job, restored_);
  check_hosts(path, chosen.hosts, options_.hosts);
  check_links(path, restored_, carrier_of_job() == carrier::ucx, encrypts_job());
  check_parts(path, restored_, hosts);
  canary_ = restored_.secret;
  restored_ahead_ns_ = restored_.now_ns - now_ns();
}

host_plan plan_of_job::for_host(ranks_of_host here) const {
  return {.job = options_.job,
          .here = here,
          .canary = canary_,
          .folder = own_folder(),
          .settings = settings_for_ranks(),
          .restored = restored_,
          .restored_ahead_ns = restored_ahead_ns_};
}

}  // namespace sojourn::detail
