// SPDX-License-Identifier: Apache-2.0
#include "sojourn/jobs/doctor.hpp"

#include "doctor/checks.hpp"
#include "frames/debug_info.hpp"

namespace sojourn {

finding detail::not_tried(const std::string& check, const trial& t) {
  return {check, severity::warning, "not tried: " + t.reason, "see 'limit on processes'"};
}

finding check_debug_information() {
  finding f{"libdw", severity::ok, "libdw.so.1: reports name source lines and inlined functions",
            ""};
  std::string reason = detail::why_no_debug_info();
  if (reason.empty()) return f;
  f.level = severity::warning;
  f.found = reason + "; optional: reports name source lines and inlined functions by it";
  f.remedy = "apt-get install libdw1; to build Sojourn, libdw-dev; or what your system calls them";
  return f;
}

std::vector<finding> diagnose() {
  using namespace detail;
  constexpr finding (*checks[])() = {
      check_kernel,
      check_c_library,
      check_address_range,
      check_worker_thread,
      check_rank_memory,
      check_shared_memory,
      check_address_space_limit,
      check_data_limit,
      check_file_size_limit,
      check_stack_limit,
      check_locked_memory_limit,
      check_open_files_limit,
      check_processes_limit,
      check_overcommit,
      check_mappings,
      check_shadow_stacks,
      check_futex,
      check_membarrier,
      check_put_and_get,
      check_death_signal,
      check_orphans,
      check_signal_descriptor,
      check_binding,
      check_cores,
      check_memory,
      check_container,
      check_debugger,
      check_network,
      check_launchers,
  };
  std::vector<finding> findings;
  for (finding (*check)() : checks) findings.push_back(check());
  return findings;
}

}  // namespace sojourn
