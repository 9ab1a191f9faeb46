// SPDX-License-Identifier: Apache-2.0
#include "stats_report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <compiled_json.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/shared/counters.hpp"

namespace sojourn::tools {
namespace {

constexpr std::size_t ranks_beside = 8;

struct row {
  std::string name;
  std::vector<std::uint64_t> per_rank;
  std::uint64_t sum;
};

std::vector<row> rows_of(const launch_result& result) {
  std::vector<row> rows;
  std::vector<std::string> names(counter_names().begin(), counter_names().end());
  for (const char* name : shared::counter_names()) names.push_back(std::string("shared_") + name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::uint64_t> per_rank;
    for (const auto& rank : result.counters) per_rank.push_back(i < rank.size() ? rank[i] : 0);
    std::uint64_t sum = std::accumulate(per_rank.begin(), per_rank.end(), std::uint64_t{0});
    rows.push_back({names[i], std::move(per_rank), sum});
  }
  return rows;
}

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

/// Writes all of `text`; 0 or an errno. A pipe that is open without blocking, and that nobody reads
/// from for so long, is given up.
int write_all(int fd, const std::string& text) {
  constexpr int patience_ms = 2000;
  for (std::size_t done = 0; done < text.size();) {
    ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      if (poll(&room, 1, patience_ms) == 0) return EAGAIN;
      continue;
    }
    if (count < 0) return errno;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

/// The words after "cannot write FILE".
const char* reason_text(int reason) {
  return reason == ENXIO || reason == EAGAIN ? "nobody reads from this pipe"
                                             : std::strerror(reason);
}

/// A reader that goes ends a write with an error, not this process.
class without_sigpipe {
 public:
  without_sigpipe() { before_ = std::signal(SIGPIPE, SIG_IGN); }
  ~without_sigpipe() { std::signal(SIGPIPE, before_); }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

 private:
  void (*before_)(int);
};

std::string cannot_write(const std::string& name, int reason) {
  return fmt::format("cannot write '{}': {}", name, reason_text(reason));
}

/// A new file beside `path`, open for writing; its name replaces `path`. -1 and errno on failure.
int open_beside(std::string& path) {
  path += ".XXXXXX";
  return mkostemp(path.data(), O_CLOEXEC);
}

}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::size_t> widths;
  for (const auto& line : cells) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : cells) {
    text += fmt::format("{:<{}}", line[0], widths[0]);
    for (std::size_t i = 1; i < line.size(); ++i)
      text += fmt::format("  {:>{}}", line[i], widths[i]);
    text += "\n";
  }
  return text;
}

std::string ranks_text(const planned_part& part) {
  if (part.rank_count == 1) return fmt::format("rank {}", part.first_rank);
  return fmt::format("ranks {} to {}", part.first_rank, part.first_rank + part.rank_count - 1);
}

std::string stats_table(const launch_plan& plan, const launch_result& result) {
  std::vector<row> rows = rows_of(result);
  std::erase_if(rows, [](const row& r) { return r.sum == 0; });
  std::string text =
      fmt::format("{} {}, {:.3f} s\n", result.counters.size(),
                  result.counters.size() == 1 ? "rank" : "ranks", result.elapsed_seconds);
  for (const planned_part& part : plan.parts) {
    if (plan.parts.size() == 1) break;
    text += fmt::format("{}: {}\n", ranks_text(part), shell_word(part.command.front()));
  }
  if (rows.empty()) return text + "no rank counted anything: the program made no use of Sojourn\n";

  std::size_t ranks = result.counters.size();
  for (std::size_t first = 0; first < ranks; first += ranks_beside) {
    std::size_t last = std::min(first + ranks_beside, ranks);
    std::vector<std::vector<std::string>> cells(1);
    cells[0] = {"counter"};
    // The sum stands first, and once.
    if (first == 0) cells[0].push_back("sum");
    for (std::size_t rank = first; rank < last; ++rank)
      cells[0].push_back(fmt::format("rank {}", rank));
    for (const row& r : rows) {
      std::vector<std::string> line = {r.name};
      if (first == 0) line.push_back(grouped(r.sum));
      for (std::size_t rank = first; rank < last; ++rank) line.push_back(grouped(r.per_rank[rank]));
      cells.push_back(std::move(line));
    }
    if (first != 0) text += "\n";
    text += aligned(cells);
  }
  return text;
}

std::string forks_table(const launch_result& result) {
  std::vector<std::vector<std::string>> cells(1);
  cells[0] = {"fork at", "forks", "blocked", "marks", "cost of links", "cost of walks"};
  for (const fork_figures& each : result.forks) {
    const char* marks = each.linked_ranks == 0            ? "tables"
                        : each.linked_ranks == each.ranks ? "links"
                                                          : "both";
    cells.push_back({each.place, grouped(each.forks), grouped(each.blocked), marks,
                     grouped(each.cost_of_links), grouped(each.cost_of_walks)});
  }
  return cells.size() == 1 ? "" : "\n" + aligned(cells);
}

std::string calls_table(const launch_result& result) {
  std::vector<std::vector<std::string>> cells(1);
  cells[0] = {"calls of", "at",    "word",  "now",         "rpc",
              "migrate",  "cache", "fetch", "migrate/rpc", "bring/rpc"};
  const auto cost = [](double c) { return c < 0 ? std::string("-") : fmt::format("{:.2f}", c); };
  for (const call_figures& each : result.calls) {
    cells.push_back({each.method, each.place, each.said, each.now, grouped(each.calls[0]),
                     grouped(each.calls[1]), grouped(each.calls[2]), grouped(each.calls[3]),
                     cost(each.cost_of_migrating), cost(each.cost_of_bringing)});
  }
  return cells.size() == 1 ? "" : "\n" + aligned(cells);
}

std::string stats_json(const launch_plan& plan, const launch_result& result) {
  nlohmann::ordered_json json;
  json["ranks"] = plan.options.rank_count;
  json["program"] = plan.program;
  json["command"] = plan.options.command;
  for (const planned_part& part : plan.parts) {
    if (plan.parts.size() == 1) break;
    json["programs"].push_back({{"first_rank", part.first_rank},
                                {"ranks", part.rank_count},
                                {"program", part.program},
                                {"command", part.command}});
  }
  json["status"] = result.status;
  if (result.failed_rank >= 0) json["failed_rank"] = result.failed_rank;
  json["elapsed_seconds"] = result.elapsed_seconds;
  nlohmann::ordered_json& all = json["counters"];
  all = nlohmann::ordered_json::object();
  for (const row& r : rows_of(result)) all[r.name] = {{"per_rank", r.per_rank}, {"sum", r.sum}};
  for (const fork_figures& each : result.forks) {
    json["forks"].push_back({{"place", each.place},
                             {"forks", each.forks},
                             {"blocked", each.blocked},
                             {"ranks", each.ranks},
                             {"linked_ranks", each.linked_ranks},
                             {"cost_of_links", each.cost_of_links},
                             {"cost_of_walks", each.cost_of_walks}});
  }
  const auto cost = [](double c) -> nlohmann::ordered_json {
    if (c < 0) return nullptr;
    return c;
  };
  for (const call_figures& each : result.calls) {
    json["calls"].push_back({{"place", each.place},
                             {"method", each.method},
                             {"said", each.said},
                             {"now", each.now},
                             {"rpc", each.calls[0]},
                             {"migrate", each.calls[1]},
                             {"cache", each.calls[2]},
                             {"fetch", each.calls[3]},
                             {"bringing", each.bringing},
                             {"cost_of_migrating", cost(each.cost_of_migrating)},
                             {"cost_of_bringing", cost(each.cost_of_bringing)},
                             {"calls_a_migration", cost(each.calls_a_migration)},
                             {"calls_a_bringing", cost(each.calls_a_bringing)},
                             {"changes", each.changes}});
  }
  // File names are bytes, not text: what is not UTF-8 in them is replaced, not refused.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

stats_file::stats_file(const std::string& name) : name_(name), path_(name) {
  if (name_.empty()) return;
  struct stat status{};
  bool exists = stat(name_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) throw error(cannot_write(name_, errno));
  if (exists && S_ISDIR(status.st_mode)) throw error(cannot_write(name_, EISDIR));
  if (exists) {
    if (access(name_.c_str(), W_OK) != 0) throw error(cannot_write(name_, errno));
    // /dev/stdout may lead to a regular file that the job's output goes to: no file to replace.
    is_replaced_ =
        S_ISREG(status.st_mode) && name_.rfind("/dev/", 0) != 0 && name_.rfind("/proc/", 0) != 0;
    char resolved[PATH_MAX];
    if (is_replaced_ && realpath(name_.c_str(), resolved) != nullptr) path_ = resolved;
  }
  if (!is_replaced_) return;
  // Tried, and gone again at once: a launcher that is killed leaves nothing behind.
  std::string beside = path_;
  int fd = open_beside(beside);
  if (fd < 0) throw error(cannot_write(name_, errno));
  close(fd);
  unlink(beside.c_str());
}

std::string stats_file::write(const std::string& text) const {
  if (!is_replaced_) {
    // Opened or written to in the ordinary way, a pipe without a reader keeps us for ever.
    without_sigpipe ignored;
    int fd = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int reason = fd < 0 ? errno : write_all(fd, text);
    if (fd >= 0) close(fd);
    return reason == 0 ? "" : cannot_write(name_, reason);
  }

  std::string beside = path_;
  int fd = open_beside(beside);
  if (fd < 0) return cannot_write(name_, errno);
  struct stat old{};
  mode_t mode = 0;
  if (stat(path_.c_str(), &old) == 0) {
    mode = old.st_mode & 07777;
  } else {
    mode_t mask = umask(0);
    umask(mask);
    mode = 0666 & ~mask;
  }
  int reason = write_all(fd, text);
  if (reason == 0 && fchmod(fd, mode) != 0) reason = errno;
  if (close(fd) != 0 && reason == 0) reason = errno;
  if (reason == 0 && rename(beside.c_str(), path_.c_str()) != 0) reason = errno;
  if (reason == 0) return "";
  unlink(beside.c_str());
  return cannot_write(name_, reason);
}

}  // namespace sojourn::tools
