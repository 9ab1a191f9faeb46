// SPDX-License-Identifier: Apache-2.0
// What this host has for jobs on several hosts. Jobs on one host need nothing of it.
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/loaded_libraries.hpp"
#include "base/printable.hpp"
#include "doctor/checks.hpp"
#include "hosts/addresses.hpp"
#include "hosts/key.hpp"
#include "hosts/munge.hpp"
#include "hosts/proof.hpp"
#include "sojourn/errors.hpp"
#include "transport/link/rdma_devices.hpp"
#include "transport/link/ucx/ucx_link.hpp"

namespace sojourn::detail {

namespace {

bool is_command(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + '/' + std::string(name)).c_str(), X_OK) == 0) return true;
  }
  return false;
}

void add(std::string& list, const std::string& next) { list += (list.empty() ? "" : ", ") + next; }

/// What --net ucx would use here.
std::string what_ucx_is_for() {
  std::string why_not;
  const std::string version = ucx::version(why_not);
  const std::string devices = printable(rdma_devices());
  if (devices.empty())
    return version.empty()
               ? "no InfiniBand or RoCE, and no UCX"
               : "UCX " + version +
                     ", no InfiniBand or RoCE, and over TCP it lets whoever reaches its "
                     "port write to the ranks' memory";
  return devices + (version.empty() ? " would be used by UCX, but " + why_not
                                    : " is used with --net ucx (UCX " + version + ")");
}

}  // namespace

finding check_network() {
  finding f{"several hosts", severity::ok, "", ""};
  std::string networks;
  try {
    for (address a : addresses_of_host()) {
      if (a.is_loopback()) continue;
      std::string text = a.text();
      add(networks, text.substr(0, text.rfind(':')));
    }
  } catch (const error& e) {
    return {f.check, severity::warning, e.what(), "name another network, or unset SOJOURN_NETWORK"};
  }
  const std::string proofs = why_no_proofs();
  if (!proofs.empty()) {
    f.level = severity::warning;
    f.found = proofs + "; optional";
    f.remedy = "apt-get install libssl3; or what your system calls it";
  } else if (networks.empty()) {
    f.level = severity::warning;
    f.found = "this host has no network but itself; optional: jobs on several hosts need one";
    f.remedy = "`ip address` shows its networks";
  } else {
    f.found = "over TCP; this host is reached at " + networks + "; " + what_ucx_is_for();
  }
  return f;
}

finding check_launchers() {
  std::string launchers;
  for (const char* name : {"ssh", "srun", "mpirun", "mpiexec.hydra"}) {
    if (is_command(name)) add(launchers, name);
  }
  const bool has_pmix(optional_library("libpmix.so.2"));
  finding f{"launchers", severity::ok, "", ""};
  f.found = launchers.empty() ? "none: no ssh, srun, mpirun or mpiexec.hydra" : launchers;
  f.found += has_pmix ? "; PMIx by libpmix.so.2" : "; no libpmix.so.2, so `sojourn run` alone";
  try {
    f.found += munge_encode(new_secret()) ? "; secrets by munge"
               : read_key(key_file())     ? "; secrets by " + printable(key_file())
                                          : "; secrets by a key that is made when it is needed";
  } catch (const error& e) {
    f.level = severity::warning;
    f.found = e.what();
    f.remedy = "it matters for jobs that srun, mpirun or mpiexec start on several hosts";
  }
  return f;
}

}  // namespace sojourn::detail
