// SPDX-License-Identifier: Apache-2.0
#include "hosts/agent_starter.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "launcher/process.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

std::string command_of(const hosts_options& options) {
  if (!options.command.empty()) return options.command;
  const std::string own = own_file();
  return own.empty() ? "sojourn" : own;
}

/// In a child of `parent` that has its standard descriptors.
[[noreturn]] void become_agent(const std::string& command, pid_t parent) {
  // Ctrl-C goes to the head, which passes it on. What the head leaves when it is killed ends, and
  // agents notice that the head has gone.
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  if (!command.empty()) {
    const std::string whole = "exec " + command;
    execl("/bin/sh", "sh", "-c", whole.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close_range(3, ~0u, 0);
  int status = 1;
  try {
    status = sojourn::run_agent();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sojourn: %s\n", printable(e.what()).c_str());
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

std::string starting_command(const hosts_options& options, const host_ranks& host) {
  return options.starter + ' ' + shell_word(host.name) + ' ' + shell_word(command_of(options)) +
         " agent";
}

agent_starter start_agent(const std::string& command) {
  int ends[3][2];
  for (int i = 0; i < 3; ++i) {
    if (pipe2(ends[i], O_CLOEXEC) != 0) {
      const int reason = errno;
      while (i-- > 0) close(ends[i][0]), close(ends[i][1]);
      throw error(std::string("no pipe can be made to an agent: ") + std::strerror(reason));
    }
  }
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[0][0], 0);
    dup2(ends[1][1], 1);
    dup2(ends[2][1], 2);
    become_agent(command, self);
  }
  const int reason = errno;
  close(ends[0][0]);
  close(ends[1][1]);
  close(ends[2][1]);
  const agent_starter started{pid, ends[0][1], ends[1][0], ends[2][0]};
  for (int fd : {started.input, started.output, started.errors}) {
    if (pid < 0) {
      close(fd);
    } else {
      fcntl(fd, F_SETFL, O_NONBLOCK);
    }
  }
  if (pid < 0)
    throw error(std::string("no process can be started for an agent: ") + std::strerror(reason));
  return started;
}

}  // namespace sojourn::detail
