// SPDX-License-Identifier: Apache-2.0
#include "launcher/kernel_kills.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/kernel_files.hpp"

namespace sojourn::detail {
namespace {

/// The number in the line "oom_kill N".
std::uint64_t kills_in(const std::string& path) {
  std::ifstream file(path);
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

}  // namespace

std::uint64_t kills_for_memory_of_group() {
  std::uint64_t kills = 0;
  // Kills are counted in enclosing groups, too, so only the innermost group is read.
  for (const std::string& folder : control_group_folders("")) {
    if (access((folder + "/memory.events").c_str(), R_OK) != 0) continue;
    kills = kills_in(folder + "/memory.events");
    break;
  }
  for (const std::string& folder : control_group_folders("memory")) {
    if (access((folder + "/memory.oom_control").c_str(), R_OK) != 0) continue;
    kills = std::max(kills, kills_in(folder + "/memory.oom_control"));
    break;
  }
  return kills;
}

bool log_says_killed_for_memory(pid_t pid) {
  int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (log < 0) return false;
  std::string wanted = "Killed process " + std::to_string(pid) + " ";
  bool found = false;
  // Each read gives one record; the end is EAGAIN, and EPIPE means that records were overwritten
  // meanwhile.
  char record[8192];
  for (;;) {
    ssize_t size = read(log, record, sizeof record);
    if (size < 0 && errno == EPIPE) continue;
    if (size <= 0) break;
    found = found ||
            std::string(record, static_cast<std::size_t>(size)).find(wanted) != std::string::npos;
  }
  close(log);
  return found;
}

}  // namespace sojourn::detail
