// SPDX-License-Identifier: Apache-2.0
#include "launcher/kernel_threads.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/kernel_files.hpp"

namespace sojourn::detail {

namespace {

std::string thread_file(thread_id id, const char* name) {
  return "/proc/" + std::to_string(id.process) + "/task/" + std::to_string(id.thread) + "/" + name;
}

}  // namespace

char state_of(thread_id id) {
  std::string stat = read_line(thread_file(id, "stat"));
  // The state follows the thread's name, which may hold anything.
  std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return '?';
  return stat[name_end + 2];
}

bool is_frozen(std::int32_t process) {
  const std::string groups = "/proc/" + std::to_string(process) + "/cgroup";
  auto any = [&groups](std::string_view controller, auto holds) {
    std::vector<std::string> folders = control_group_folders(controller, groups);
    return std::any_of(folders.begin(), folders.end(), holds);
  };
  return any("",
             [](const std::string& folder) {
               return read_line(folder + "/cgroup.freeze") == "1";
             }) ||
         any("freezer", [](const std::string& folder) {
           return read_line(folder + "/freezer.state") == "FROZEN";
         });
}

bool restarts_when_interrupted(thread_id id) {
  std::string text = read_line(thread_file(id, "syscall"));
  std::optional<long> number = parse_number(text.substr(0, text.find(' ')));
  return number && (*number == SYS_futex || *number == SYS_read || *number == SYS_wait4);
}

std::string sleep_of(thread_id id) {
  if (!sleeps_in_kernel(state_of(id))) return "";
  return read_field(thread_file(id, "status"), "voluntary_ctxt_switches");
}

core_use core_use_of(thread_id id) {
  std::istringstream text(read_line(thread_file(id, "schedstat")));
  core_use use;
  std::chrono::nanoseconds::rep ran = 0;
  std::chrono::nanoseconds::rep waited = 0;
  if (text >> ran >> waited >> use.turns) use.ran = std::chrono::nanoseconds(ran);
  return use;
}

}  // namespace sojourn::detail
