// SPDX-License-Identifier: Apache-2.0
// A small launcher with PMI, for tests: starts a program once for each host in a list, as
// mpiexec.hydra does, but all on this machine, whose processes take themselves for those of several
// hosts (SOJOURN_TEST_HOST). The first process has the standard input. When a process fails, the
// others get SIGTERM and, a second later, SIGKILL; not when it has taken leave of PMI before, as
// with hydra. Passes on the signals that it gets.
//
//   pmi_launcher a,a,b,b PROGRAM ARGUMENTS...
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "hosts/pmi_server.hpp"

using clock_type = std::chrono::steady_clock;

struct process {
  std::string host;
  pid_t pid = -1;
  int socket = -1;
  std::string heard = {};
  bool has_left = false;
};

void start(process& p, std::size_t number, std::size_t count, char** command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(1);
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  p.socket = ends[0];
  p.pid = fork();
  if (p.pid != 0) {
    close(ends[1]);
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
  setenv("PMI_RANK", std::to_string(number).c_str(), 1);
  setenv("PMI_SIZE", std::to_string(count).c_str(), 1);
  setenv("SOJOURN_TEST_HOST", p.host.c_str(), 1);
  // A home that the hosts do not share.
  if (const char* homes = std::getenv("PMI_LAUNCHER_HOMES"))
    setenv("XDG_CONFIG_HOME", (std::string(homes) + '/' + p.host).c_str(), 1);
  if (number != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    close(nothing);
  }
  // Of the other program in a list "a : b", where there is one.
  char** own = command;
  if (number + 1 == count) {
    for (char** word = command; *word != nullptr; ++word) {
      if (std::string(*word) == ":") own = word + 1;
    }
  }
  for (char** word = own; *word != nullptr; ++word) {
    if (std::string(*word) == ":") *word = nullptr;
  }
  execvp(own[0], own);
  std::perror(own[0]);
  _exit(127);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<process> all;
  std::istringstream hosts(argv[1]);
  for (std::string host; std::getline(hosts, host, ',');) all.push_back({host});

  sigset_t awaited;
  sigemptyset(&awaited);
  for (int s : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1}) sigaddset(&awaited, s);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  const int signals = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
  for (std::size_t i = 0; i < all.size(); ++i) start(all[i], i, all.size(), argv + 2);

  sojourn::tests::pmi_server server(static_cast<int>(all.size()));
  auto signal_all = [&](int s) {
    for (const process& p : all) {
      if (p.pid > 0) kill(p.pid, s);
    }
  };
  int result = 0;
  std::size_t left = all.size();
  std::optional<clock_type::time_point> kill_at;
  while (left > 0) {
    std::vector<pollfd> waits{{signals, POLLIN, 0}};
    for (const process& p : all) waits.push_back({p.socket, POLLIN, 0});
    (void)poll(waits.data(), waits.size(), kill_at ? 50 : -1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      process& from = all[i];
      char text[4096];
      if (waits[i + 1].revents == 0) continue;
      const ssize_t n = read(from.socket, text, sizeof text);
      if (n <= 0) {
        close(from.socket);
        from.socket = -1;
        continue;
      }
      from.heard.append(text, static_cast<std::size_t>(n));
      for (std::size_t end; (end = from.heard.find('\n')) != std::string::npos;) {
        if (from.heard.starts_with("cmd=finalize")) from.has_left = true;
        for (const auto& answer : server.hear(static_cast<int>(i), from.heard.substr(0, end))) {
          const std::string line = answer.line + '\n';
          (void)send(all[static_cast<std::size_t>(answer.to)].socket, line.data(), line.size(),
                     MSG_NOSIGNAL);
        }
        from.heard.erase(0, end + 1);
      }
    }
    signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int s = static_cast<int>(info.ssi_signo);
      if (s != SIGCHLD) signal_all(s);
    }
    for (process& p : all) {
      int status = 0;
      if (p.pid <= 0 || waitpid(p.pid, &status, WNOHANG) != p.pid) continue;
      p.pid = 0;
      --left;
      const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (code == 0 || kill_at) continue;
      if (result == 0) result = code;
      if (p.has_left && !WIFSIGNALED(status)) continue;
      signal_all(SIGTERM);
      kill_at = clock_type::now() + std::chrono::seconds(1);
    }
    if (kill_at && clock_type::now() > *kill_at) signal_all(SIGKILL);
  }
  return result;
}
