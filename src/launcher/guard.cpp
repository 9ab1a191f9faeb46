// SPDX-License-Identifier: Apache-2.0
#include "launcher/guard.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/doctor_hint.hpp"
#include "job/segment.hpp"
#include "sojourn/errors.hpp"

extern char** environ;

namespace sojourn::detail {
namespace {

std::string new_name() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = 0;
  return std::to_string(getpid()) + "-" + std::to_string(random);
}

/// Closes all descriptors but one: the guard must not keep the launcher's output, or a lock, open.
void close_all_but(int kept) {
#ifdef SYS_close_range
  if ((kept == 0 || syscall(SYS_close_range, 0, kept - 1, 0) == 0) &&
      syscall(SYS_close_range, kept + 1, ~0U, 0) == 0) {
    return;
  }
#endif
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    int fd = std::atoi(entry->d_name);
    if (fd != kept && fd != dirfd(folder)) close(fd);
  }
  closedir(folder);
}

/// True when the process was started with `setting` in its environment.
bool has_setting(const char* pid, const std::string& setting) {
  int fd = open((std::string("/proc/") + pid + "/environ").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  // Entries end with a zero byte each, and one is put before the first.
  std::string text(1, '\0');
  char buffer[4096];
  for (ssize_t count; (count = read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  close(fd);
  return text.find('\0' + setting + '\0') != std::string::npos;
}

/// Sends SIGKILL to all processes that have `setting`; how many there were.
int kill_all_with(const std::string& setting) {
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return 0;
  int found = 0;
  while (dirent* entry = readdir(folder)) {
    pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    // By the time of the kill the number may belong to another process, so a descriptor is opened
    // first.
#ifdef SYS_pidfd_open
    int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
    int process = -1;
#endif
    if (has_setting(entry->d_name, setting)) {
      ++found;
#ifdef SYS_pidfd_send_signal
      if (process >= 0) syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
#endif
      if (process < 0) kill(pid, SIGKILL);
    }
    if (process >= 0) close(process);
  }
  closedir(folder);
  return found;
}

[[noreturn]] void guard(int lifeline, const std::string& setting) {
  // Out of reach of Ctrl-C and of what is sent to the launcher's process group.
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "sojourn-guard");
  close_all_but(lifeline);
  // The guard of a job that runs inside another must outlive that one, so it must not be found by
  // the outer job's name.
  const std::string prefix = std::string(job_name_variable) + "=";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, prefix.c_str(), prefix.size()) == 0) **entry = '-';
  }

  char word;
  ssize_t count;
  while ((count = read(lifeline, &word, 1)) < 0 && errno == EINTR) {
  }
  if (count == 0) {
    // What is killed may have started something in the meantime: done when nothing was found twice
    // in a row.
    constexpr int rounds_max = 200;
    for (int quiet = 0, round = 0; quiet < 2 && round < rounds_max; ++round) {
      quiet = kill_all_with(setting) == 0 ? quiet + 1 : 0;
      poll(nullptr, 0, 5);
    }
  }
  _exit(0);
}

}  // namespace

job_guard::job_guard() : name_(new_name()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw error(std::string("cannot make a pipe to the job's guard: ") + std::strerror(errno) +
                doctor_hint);
  }
  pid_ = fork();
  if (pid_ < 0) {
    int reason = errno;
    close(ends[0]);
    close(ends[1]);
    throw error(std::string("cannot start the job's guard (") + std::strerror(reason) +
                "): raise the limits on processes (ulimit -u) and memory" + doctor_hint);
  }
  if (pid_ == 0) {
    close(ends[1]);
    guard(ends[0], std::string(job_name_variable) + "=" + name_);
  }
  close(ends[0]);
  lifeline_ = ends[1];
}

void job_guard::dismiss() {
  if (pid_ == 0) return;
  char word = 0;
  (void)!write(lifeline_, &word, 1);
  close(lifeline_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

}  // namespace sojourn::detail
