// SPDX-License-Identifier: Apache-2.0
// The last check: a whole job, of two ranks that call and visit each other.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "doctor_parts.hpp"
#include "sojourn/sojourn.hpp"

namespace sojourn::tools {
namespace {

constexpr int ranks = 2;
// A hundred times what it takes; then something hangs.
constexpr std::chrono::seconds patience{20};

struct visited {
  int value = 0;
  int add(int n) { return value += n; }
};

/// Moves there, so that the rank it ends on is the visited object's.
int visit(global_ptr<visited> there) {
  there.call<&visited::add>(via::migrate, 1);
  return rank_me();
}

struct outcome {
  int status = -1;  ///< As waitpid() gives it.
  int reason = 0;   ///< Errno when nothing could be started.
  bool hung = false;
  std::string text;  ///< All that was written.
};

/// Runs a program and ends it when our patience does.
outcome run_program(std::vector<std::string> words) {
  outcome result;
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) {
    result.reason = errno;
    return result;
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  pid_t child = ::fork();
  if (child == 0) {
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    execv(arguments[0], arguments.data());
    fmt::print(stderr, "cannot execute {}: {}\n", words[0], std::strerror(errno));
    std::fflush(stderr);
    _exit(127);
  }
  result.reason = child < 0 ? errno : 0;
  if (nothing >= 0) close(nothing);
  close(output[1]);
  using clock = std::chrono::steady_clock;
  clock::time_point end = clock::now() + patience;
  while (child > 0) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
    pollfd wait{output[0], POLLIN, 0};
    int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    char piece[1024];
    ssize_t count = ready > 0 ? read(output[0], piece, sizeof piece) : 0;
    result.hung = ready == 0;
    if (count <= 0) break;
    result.text.append(piece, static_cast<std::size_t>(count));
  }
  close(output[0]);
  if (child > 0) {
    // Its ranks die with it.
    if (result.hung) kill(child, SIGKILL);
    while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
    }
  }
  return result;
}

/// The first line, without the name of the program that says it, and without the hint at `sojourn
/// doctor`.
std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  line = line.substr(0, line.find("; `sojourn doctor`"));
  for (std::string_view prefix : {"sojourn run: ", "sojourn: "}) {
    if (line.rfind(prefix, 0) == 0) return line.substr(prefix.size());
  }
  return line;
}

}  // namespace

int be_rank() {
  char name[] = "sojourn";
  char* arguments[] = {name, nullptr};
  return run(1, arguments, [] {
    int next = (rank_me() + 1) % rank_count();
    global_ptr<visited> there = make<visited>(next);
    if (there.call<&visited::add>(via::rpc, 1) != 1) return 1;
    if (activate(visit, there) != next) return 1;
    if (there.call<&visited::add>(via::rpc, 1) != 3) return 1;
    int sum = reduce(1, [](int a, int b) { return a + b; });
    destroy(there);
    return sum == rank_count() ? 0 : 1;
  });
}

finding check_job() {
  finding f{"job of two ranks", severity::failure, "", ""};
  std::string self;
  try {
    self = own_file();
  } catch (const error& e) {
    f.found = e.what();
    f.remedy = "mount /proc";
    return f;
  }
  auto started = std::chrono::steady_clock::now();
  outcome o = run_program({self, "run", "-n", std::to_string(ranks), self, "doctor", as_rank});
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - started;
  if (o.reason == 0 && WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0) {
    f.level = severity::ok;
    f.found =
        fmt::format("started, called, migrated, reduced and ended in {:.0f} ms", elapsed.count());
    return f;
  }
  f.remedy =
      fmt::format("remedy the failures above; to see all that it says: {} run -n {} {} doctor {}",
                  self, ranks, self, as_rank);
  if (o.reason != 0) {
    f.found = fmt::format("cannot be started: {}", std::strerror(o.reason));
  } else if (o.hung) {
    f.found = fmt::format("was not done after {} s", patience.count());
  } else if (!o.text.empty()) {
    f.found = first_line(o.text);
  } else {
    f.found = fmt::format("ended with status {}",
                          WIFEXITED(o.status) ? WEXITSTATUS(o.status) : 128 + WTERMSIG(o.status));
  }
  return f;
}

}  // namespace sojourn::tools
