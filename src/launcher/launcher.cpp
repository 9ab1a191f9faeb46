// SPDX-License-Identifier: Apache-2.0
#include "sojourn/jobs/launcher.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "base/settings.hpp"
#include "job/cores.hpp"
#include "job/segment.hpp"
#include "launcher/binding.hpp"
#include "launcher/guard.hpp"
#include "launcher/launch_here.hpp"
#include "launcher/other_hosts.hpp"
#include "launcher/process.hpp"
#include "launcher/supervise.hpp"
#include "launcher/told.hpp"
#include "memory/address_map.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn {
namespace {

using namespace detail;

/// 0, or the errno that executing `path` would give.
int executable_error(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// The file that `name` means, as execvp() would find it.
std::string find_program(const std::string& name) {
  int reason = ENOENT;
  if (name.find('/') != std::string::npos) {
    reason = executable_error(name);
    if (reason == 0) return name;
  } else if (!name.empty()) {
    const char* path = std::getenv("PATH");
    std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t start = 0; start <= folders.size();) {
      std::size_t end = std::min(folders.find(':', start), folders.size());
      std::string folder = folders.substr(start, end - start);
      std::string file = (folder.empty() ? "." : folder) + "/" + name;
      int failure = executable_error(file);
      if (failure == 0) return file;
      // A folder that may not be searched does not tell whether the program is there.
      if (failure == EACCES && access(file.c_str(), F_OK) == 0) reason = EACCES;
      start = end + 1;
    }
  }
  std::string sentence = "cannot start '" + name + "': " + std::strerror(reason);
  if (name.find('/') == std::string::npos && executable_error("./" + name) == 0) {
    sentence += "; did you mean ./" + name + "?";
  }
  throw error(sentence);
}

/// The job's memory, as the launcher sees it.
class job_memory {
 public:
  explicit job_memory(const launch_plan& plan)
      : fds_(create_job({.ranks = plan.options.rank_count,
                         .first_here = plan.first_here,
                         .ranks_here = plan.ranks_here,
                         .share_heap = plan.options.share_heap,
                         .cores = plan.cores,
                         .bound = !plan.core_of_rank.empty()})) {
    try {
      segment_ = map_job(fds_.segment);
      for (int rank = 0; rank < plan.options.rank_count; ++rank) {
        segment_->ranks[rank].part = static_cast<std::uint32_t>(part_of_rank(plan, rank));
      }
      plan.options.hosts.copy(segment_->hosts, sizeof segment_->hosts - 1);
    } catch (...) {
      close_fds();
      throw;
    }
  }
  ~job_memory() {
    munmap(segment_, segment_->segment_bytes);
    close_fds();
  }
  job_memory(const job_memory&) = delete;
  job_memory& operator=(const job_memory&) = delete;

  const job_fds& fds() const { return fds_; }
  job_segment& segment() const { return *segment_; }

 private:
  void close_fds() const {
    close(fds_.segment);
    if (fds_.heap >= 0) close(fds_.heap);
    close(fds_.bell);
  }

  job_fds fds_;
  job_segment* segment_ = nullptr;
};

std::vector<std::vector<std::uint64_t>> read_counters(const job_segment& job) {
  std::vector<std::vector<std::uint64_t>> of_ranks;
  const int first = static_cast<int>(job.first_here);
  for (int rank = first; rank < first + static_cast<int>(job.ranks_here); ++rank) {
    auto values = job.counts_of(rank).now().values();
    of_ranks.emplace_back(values.begin(), values.end());
    const auto shared = job.counts_of(rank).shared.values();
    of_ranks.back().insert(of_ranks.back().end(), shared.begin(), shared.end());
  }
  return of_ranks;
}

/// Of the name of a checkpoint.
void check_length(const std::string& path) {
  if (path.size() >= sizeof(job_segment::restore_path))
    throw error("--restore: the name is too long");
}

std::string hexadecimal_byte(char c) {
  constexpr char digits[] = "0123456789abcdef";
  auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

}  // namespace

std::string printable(const std::string& text) { return detail::printable(text); }

std::vector<std::string> unknown_settings() { return detail::unknown_settings(); }

int checkpoint_rank_count(const std::string& path) {
  check_length(path);
  return static_cast<int>(read_set(path).ranks);
}

std::string checkpoint_hosts(const std::string& path) {
  check_length(path);
  return read_hosts(path);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  auto is_shown_so = [](char c) {
    return c != '\n' && c != '\t' && printable(std::string(1, c)).size() == 1;
  };
  if (printable(word) != word || word.find_first_of("\n\t") != std::string::npos) {
    // Byte by byte, so that bytes of a character that could be shown may be escaped, too.
    std::string text = "$'";
    for (char c : word) {
      if (c == '\'' || c == '\\') text += '\\';
      text += is_shown_so(c) ? std::string(1, c) : hexadecimal_byte(c);
    }
    return text + "'";
  }
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::size_t part_of_rank(const launch_plan& plan, int rank) {
  std::size_t part = plan.parts.size() - 1;
  while (part > 0 && rank < plan.parts[part].first_rank) --part;
  return part;
}

std::string command_line(const launch_options& options) {
  std::string text;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string setting = *variable;
    std::string name = setting.substr(0, setting.find('='));
    // SOJOURN_SHARE is told by --share.
    if (!detail::is_setting_of_a_run(name) || name == "SOJOURN_SHARE" || name == setting) continue;
    text += name + '=' + shell_word(setting.substr(name.size() + 1)) + ' ';
  }
  auto ranks = [](int count) { return " -n " + std::to_string(count); };
  auto words = [&](const std::vector<std::string>& command) {
    for (const std::string& word : command) text += ' ' + shell_word(word);
  };
  bool several = !options.parts.empty();
  text += "sojourn run" + ranks(several ? options.parts.front().rank_count : options.rank_count);
  if (!options.hosts.empty()) text += " --hosts " + shell_word(options.hosts);
  if (!options.agent.empty()) text += " --agent " + shell_word(options.agent);
  if (options.bind != binding::automatic) {
    text += options.bind == binding::wanted ? " --bind" : " --no-bind";
  }
  if (options.label) text += " --label";
  if (!options.share_heap) text += " --share off";
  if (!options.restore.empty()) text += " --restore " + shell_word(options.restore);
  words(several ? options.parts.front().command : options.command);
  for (std::size_t part = 1; part < options.parts.size(); ++part) {
    text += " :" + ranks(options.parts[part].rank_count);
    words(options.parts[part].command);
  }
  return text;
}

int cores_allowed() { return std::min(static_cast<int>(affinity_cores().size()), quota_cores()); }

launch_plan plan_launch(launch_options options) {
  return detail::plan_on_host(std::move(options), {});
}

namespace detail {

void refuse_other_hosts(const std::string& path, const std::string& wrote, const std::string& now) {
  auto text = [](const std::string& hosts) {
    return hosts.find(',') == hosts.npos ? "all ranks on one host" : "--hosts " + hosts;
  };
  refuse_to_restore(path + " was written with " + text(wrote) + ", and this job has " + text(now),
                    "give as many hosts, which may be others, each with as many ranks");
}

void check_restore(const launch_options& options, const checkpoint_set& set) {
  const std::string& path = options.restore;
  check_length(path);
  auto number = [](std::uint64_t n) { return std::to_string(n); };
  if (set.ranks != static_cast<std::uint64_t>(options.rank_count)) {
    refuse_to_restore(path + " was written by " + number(set.ranks) + " ranks, and this job has " +
                          std::to_string(options.rank_count),
                      ("run it with -n " + number(set.ranks)).c_str());
  }
  address_map map = map_from_environment(options.rank_count);
  std::uint64_t stack_bytes = map.stack_bytes;
  if (set.region_bytes != map.bytes || set.stack_bytes != stack_bytes ||
      set.main_stack_bytes != map.main_stack_bytes) {
    refuse_to_restore(path + " was written with another size of the region or of stacks",
                      ("set SOJOURN_REGION_GIB=" + number(set.region_bytes >> 30) +
                       ", SOJOURN_STACK_KIB=" + number(set.stack_bytes >> 10) +
                       " and SOJOURN_MAIN_STACK_KIB=" + number(set.main_stack_bytes >> 10))
                          .c_str());
  }
}

void go_on_from(job_segment& job, const std::string& path, const checkpoint_set& set,
                std::uint64_t ahead_ns) {
  path.copy(job.restore_path, sizeof job.restore_path - 1);
  job.restored = set;
  job.secret = set.secret;
  job.clock_ahead_ns = ahead_ns;
}

launch_plan plan_on_host(launch_options options, std::optional<ranks_of_host> here) {
  if (!options.parts.empty()) {
    long ranks = 0;
    for (const launch_part& part : options.parts) {
      if (part.rank_count < 1) throw error("each program of a job has at least one rank");
      if (part.command.empty()) throw error("no program was given");
      ranks += part.rank_count;
    }
    options.rank_count = static_cast<int>(std::min<long>(ranks, INT_MAX));
    options.command = options.parts.front().command;
    if (!options.restore.empty() && options.parts.size() > 1) {
      throw error("--restore is for jobs of one program, and this one has several");
    }
  }
  if (options.rank_count < 1 || options.rank_count > rank_count_max) {
    throw error("a job has from 1 to " + std::to_string(rank_count_max) + " ranks, not " +
                std::to_string(options.rank_count));
  }
  if (options.command.empty()) throw error("no program was given");

  // Where there are several hosts, the head has checked it.
  if (const std::string& path = options.restore; !path.empty() && !here) {
    refuse_if_in_use(path);
    check_restore(options, read_set(path));
    const std::string wrote = read_hosts(path);
    if (wrote.find(',') != wrote.npos) refuse_other_hosts(path, wrote, "");
  }

  launch_plan plan;
  if (options.parts.empty()) {
    plan.parts.push_back({0, options.rank_count, options.command, {}});
  }
  for (int first = 0; const launch_part& part : options.parts) {
    plan.parts.push_back({first, part.rank_count, part.command, {}});
    first += part.rank_count;
  }
  for (planned_part& part : plan.parts)
    part.program = find_program(options.file.empty() ? part.command.front() : options.file);
  plan.program = plan.parts.front().program;
  plan.first_here = here ? here->first : 0;
  plan.ranks_here = here ? here->count : options.rank_count;
  const int allowed = cores_allowed();
  plan.cores = cores_to_count_on(allowed);
  if (options.bind != binding::off) {
    if (allowed >= plan.ranks_here) {
      std::vector<int> order = binding_order(affinity_cores(), &hardware_threads_beside);
      order.resize(static_cast<std::size_t>(plan.ranks_here));
      plan.core_of_rank = std::move(order);
    } else if (options.bind == binding::wanted) {
      plan.warning = "ranks are not bound to cores: " + std::to_string(plan.ranks_here) +
                     " ranks need a core each, and the job may use " + std::to_string(allowed);
    }
  }
  plan.options = std::move(options);
  return plan;
}

}  // namespace detail

launch_result launch(const launch_plan& plan) { return detail::launch_here(plan, nullptr); }

namespace detail {

launch_result launch_here(const launch_plan& plan, other_hosts* elsewhere) {
  process_state state(open_files_needed(plan.ranks_here) +
                      (elsewhere != nullptr ? elsewhere->open_files_needed() : 0));
  job_guard guard;
  // The guard is among them: as long as this process lives, it is not part of the job.
  std::vector<pid_t> strangers = adopted_children({});
  job_memory memory(plan);
  if (elsewhere != nullptr) {
    elsewhere->prepare(memory.segment());
  } else if (const std::string& path = plan.options.restore; !path.empty()) {
    const checkpoint_set set = read_set(path);
    go_on_from(memory.segment(), path, set, set.now_ns - now_ns());
  }
  std::vector<started_rank> ranks;
  try {
    ranks = start_ranks(plan, memory.segment(), memory.fds(), state, guard.job_name(), strangers);
  } catch (const start_interrupted& interrupted) {
    return {128 + interrupted.signal, -1, 0, read_counters(memory.segment()), {}, {}};
  }
  supervisor watch(plan, memory.segment(), memory.fds().bell, ranks, state.awaited_signals(),
                   std::move(strangers), guard, elsewhere);
  watch.run();
  const told_of_job told = told_by(memory.segment(), plan);
  if (elsewhere != nullptr) elsewhere->add_told(told);
  return {watch.status(),          watch.failed_rank(),
          watch.elapsed_seconds(), read_counters(memory.segment()),
          figures_of(told.forks),  figures_of(told.calls)};
}

}  // namespace detail

}  // namespace sojourn
