// SPDX-License-Identifier: Apache-2.0
#include "doctor_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string_view>
#include <thread>

namespace sojourn::tools {
namespace {

constexpr std::string_view speakers[] = {"sojourn run: ", "sojourn: "};
// What the program gets to end by itself.
constexpr std::chrono::milliseconds end_patience{5000};
constexpr std::chrono::milliseconds look_again{20};

/// Waits, and then ends it by force.
void end_soon(pid_t child, int& status) {
  kill(child, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + end_patience;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) kill(child, SIGKILL);
    std::this_thread::sleep_for(look_again);
  }
}

}  // namespace

bool outcome::is_well() const {
  return reason == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

outcome run_program(std::vector<std::string> words, std::chrono::seconds patience) {
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
    // Its ranks end with it, on other hosts, too, if it has the time.
    if (result.hung) {
      end_soon(child, result.status);
    } else {
      while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
      }
    }
  }
  return result;
}

std::string why_it_failed(const outcome& o, std::chrono::seconds patience) {
  if (o.reason != 0) return fmt::format("cannot be started: {}", std::strerror(o.reason));
  // Others may speak, too: a shell, or ssh with the banner of a host.
  std::string said;
  std::istringstream lines(o.text);
  for (std::string line; said.empty() && std::getline(lines, line);) {
    if (bare(line) != line) said = bare(line);
  }
  if (o.hung)
    return fmt::format("was not done after {} s{}{}", patience.count(), said.empty() ? "" : ": ",
                       said);
  if (!said.empty()) return said;
  if (!o.text.empty()) return o.text.substr(0, o.text.find('\n'));
  return fmt::format("ended with status {}",
                     WIFEXITED(o.status) ? WEXITSTATUS(o.status) : 128 + WTERMSIG(o.status));
}

std::string bare(std::string line) {
  line = line.substr(0, line.find("; `sojourn doctor`"));
  for (std::string_view prefix : speakers) {
    if (line.rfind(prefix, 0) == 0) return line.substr(prefix.size());
  }
  return line;
}

}  // namespace sojourn::tools
