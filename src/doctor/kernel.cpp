// SPDX-License-Identifier: Apache-2.0
// What the kernel can do, and what it, or a container, refuses. Each feature is used as the runtime
// uses it.
#include <gnu/libc-version.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "base/check.hpp"
#include "base/kernel_files.hpp"
#include "doctor/checks.hpp"
#include "doctor/trial.hpp"
#include "job/cores.hpp"
#include "job/shadow_stacks.hpp"

namespace sojourn::detail {
namespace {

constexpr const char* allow_in_container =
    "; in a container, have its seccomp profile allow this (docker run --security-opt "
    "seccomp=FILE)";

/// The finding of an attempt. `without` says what jobs do when it does not work.
finding by_trial(const char* name, attempt_result (*attempt)(), const char* found,
                 severity when_not, const char* without, const std::string& remedy) {
  trial t = try_in_child(attempt);
  if (t.works()) return {name, severity::ok, found + t.note, ""};
  if (!t.started) return not_tried(name, t);
  return {name, when_not, t.reason + "; " + without, remedy};
}

/// Waits until there is something to read from `fd`, or all writers have closed it. Returns false
/// after a second.
bool readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return poll(&wait, 1, 1000) > 0;
}

attempt_result sleep_on_futex() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return failed("mmap");
  auto* word = static_cast<std::atomic<std::uint32_t>*>(page);
  word->store(1);
  pid_t waker = fork_helper([&] {
    // Repeated until somebody was woken, because the other process may not sleep yet.
    for (int i = 0; i < 2000; ++i) {
      if (syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0) != 0) return;
      usleep(1000);
    }
  });
  if (waker < 0) return failed("fork");
  timespec patience{2, 0};
  if (syscall(SYS_futex, word, FUTEX_WAIT, 1, &patience, nullptr, 0) != 0) return failed("futex");
  return {};
}

attempt_result fence_others() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0 ||
      syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) {
    return failed("membarrier");
  }
  return {};
}

attempt_result read_sibling() {
  int ready[2];
  if (pipe(ready) != 0) return failed("pipe");
  volatile std::uint64_t value = 1;
  pid_t one = fork_helper([&] {
    value = 2;
    prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
    (void)!write(ready[1], "r", 1);
    pause();
  });
  if (one < 0) return failed("fork");
  if (!readable(ready[0])) return {"a process did not start", ""};
  pid_t other = fork_helper([&] {
    std::uint64_t copy = 0;
    iovec here{&copy, sizeof copy};
    iovec there{const_cast<std::uint64_t*>(&value), sizeof value};
    if (process_vm_readv(one, &here, 1, &there, 1, 0) != sizeof copy ||
        process_vm_writev(one, &here, 1, &there, 1, 0) != sizeof copy) {
      _exit(errno != 0 ? errno : EIO);
    }
    _exit(copy == 2 ? 0 : EIO);
  });
  if (other < 0) return failed("fork");
  int status = 0;
  waitpid(other, &status, 0);
  if (!WIFEXITED(status)) return {"process_vm_readv ends the process that calls it", ""};
  errno = WEXITSTATUS(status);
  if (errno != 0) return failed("process_vm_readv");
  return {};
}

attempt_result die_with_parent() {
  int alive[2];
  int ready[2];
  if (pipe(alive) != 0 || pipe(ready) != 0) return failed("pipe");
  pid_t parent = fork_helper([&] {
    pid_t me = getpid();
    fork_helper([&] {
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == me) (void)!write(ready[1], "r", 1);
      pause();
    });
    readable(ready[0]);
  });
  if (parent < 0) return failed("fork");
  close(alive[1]);
  waitpid(parent, nullptr, 0);
  // The last writer of this pipe is the process that must be dead now.
  if (!readable(alive[0])) return {"a process whose parent has died lives on", ""};
  return {};
}

attempt_result adopt_orphan() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return failed("prctl");
  pid_t me = getpid();
  int adopted[2];
  if (pipe(adopted) != 0) return failed("pipe");
  pid_t parent = fork_helper([&] {
    pid_t first = getpid();
    fork_helper([&] {
      while (getppid() == first) usleep(1000);
      if (getppid() == me) (void)!write(adopted[1], "a", 1);
    });
  });
  if (parent < 0) return failed("fork");
  waitpid(parent, nullptr, 0);
  if (!readable(adopted[0])) return {"an orphan is not adopted", ""};
  return {};
}

attempt_result read_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  int fd = signalfd(-1, &set, SFD_CLOEXEC);
  if (fd < 0) return failed("signalfd");
  raise(SIGUSR1);
  if (!readable(fd)) return {"signalfd shows no signal", ""};
  return {};
}

attempt_result bind_to_core() {
  auto core = static_cast<std::size_t>(affinity_cores().front());
  cpu_set_t* set = CPU_ALLOC(core + 1);
  std::size_t bytes = CPU_ALLOC_SIZE(core + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(core, bytes, set);
  if (sched_setaffinity(0, bytes, set) != 0) return failed("sched_setaffinity");
  CPU_FREE(set);
  return {};
}

attempt_result trace_child() {
  pid_t child = fork_helper([] { pause(); });
  if (child < 0) return failed("fork");
  if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) return failed("ptrace");
  return {};
}

}  // namespace

finding check_kernel() {
  utsname name{};
  uname(&name);
  finding f{"kernel", severity::ok, format("%s %s on %s", name.sysname, name.release, name.machine),
            ""};
  if (access("/proc/self/exe", F_OK) != 0) {
    f.level = severity::failure;
    f.found += ", without /proc, where ranks read what is mapped";
    f.remedy = "mount /proc";
  }
  return f;
}

finding check_c_library() {
  finding f{"C library", severity::ok, "", ""};
  int major = 0;
  int minor = 0;
  const char* here = gnu_get_libc_version();
  std::sscanf(here, "%d.%d", &major, &minor);
  f.found = format("glibc %s; built with %d.%d", here, __GLIBC__, __GLIBC_MINOR__);
  if (major * 1000 + minor < __GLIBC__ * 1000 + __GLIBC_MINOR__) {
    f.level = severity::warning;
    f.remedy = "build Sojourn here, or on a system with this C library or an older one";
  }
  return f;
}

finding check_shadow_stacks() {
  finding f{"shadow stacks", severity::ok, "", ""};
  switch (shadow_stacks_here()) {
    case shadow_stacks::not_supported:
      f.found = "none: not offered by this kernel and processor";
      break;
    case shadow_stacks::off:
      f.found = "off for this process; the kernel has them";
      break;
    case shadow_stacks::on:
      f.level = severity::failure;
      f.found = "on for this process, and stacks that move cannot have them";
      f.remedy = shadow_stacks_remedy;
      break;
  }
  return f;
}

finding check_futex() {
  return by_trial("futex", sleep_on_futex, "wakes a process that sleeps", severity::failure,
                  "idle ranks cannot sleep",
                  std::string("use a kernel with futexes") + allow_in_container);
}

finding check_membarrier() {
  return by_trial("membarrier", fence_others, "works", severity::warning,
                  "each message sent costs a fence, some 10 ns",
                  std::string("use Linux 4.16 or later") + allow_in_container);
}

finding check_put_and_get() {
  std::string remedy =
      "in a container, docker run --cap-add=SYS_PTRACE, or a seccomp profile that allows "
      "process_vm_readv";
  std::string scope = read_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope == "2" || scope == "3") {
    remedy = "sysctl kernel.yama.ptrace_scope=1 (it is " + scope + "); " + remedy;
  }
  return by_trial("put and get", read_sibling, "a rank may read and write another's memory",
                  severity::warning, "with --share off, put and get go by messages", remedy);
}

finding check_death_signal() {
  return by_trial("death signal", die_with_parent, "processes die with the one that started them",
                  severity::failure, "ranks would outlive a launcher that is killed",
                  std::string("have prctl(PR_SET_PDEATHSIG) allowed") + allow_in_container);
}

finding check_orphans() {
  return by_trial("orphans", adopt_orphan, "are adopted by the launcher, which ends them",
                  severity::warning, "what a dead rank has started is left running",
                  std::string("have prctl(PR_SET_CHILD_SUBREAPER) allowed") + allow_in_container);
}

finding check_signal_descriptor() {
  return by_trial("signalfd", read_signal, "works", severity::failure,
                  "the launcher cannot wait for its ranks",
                  std::string("have signalfd allowed") + allow_in_container);
}

finding check_binding() {
  return by_trial("binding", bind_to_core, "a rank may be bound to a core", severity::warning,
                  "jobs start with --no-bind only",
                  std::string("use `sojourn run --no-bind`") + allow_in_container);
}

finding check_container() {
  finding f{"restrictions", severity::ok, "", ""};
  const std::string status = "/proc/self/status";
  std::string seccomp = read_field(status, "Seccomp");
  std::string capabilities = read_field(status, "CapEff");
  if (seccomp.empty()) {
    f.found = "unknown: /proc is not readable here";
    return f;
  }
  bool marked = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
  f.found = marked ? "in a container; " : "";
  f.found += seccomp == "0" ? "no seccomp filter" : "a seccomp filter, which the lines above tried";
  bool none = capabilities.find_first_not_of('0') == std::string::npos;
  f.found += none ? "; no capabilities, and none is needed" : "; some capabilities, none is needed";
  if (read_field(status, "NoNewPrivs") == "1") f.found += "; no new privileges";
  return f;
}

finding check_debugger() {
  std::string scope = read_line("/proc/sys/kernel/yama/ptrace_scope");
  std::string found =
      scope.empty() || scope == "0"
          ? "gdb may attach to ranks"
          : "gdb may start ranks, and root's may attach (yama.ptrace_scope is " + scope + ")";
  return by_trial("debugger", trace_child, found.c_str(), severity::warning,
                  "gdb can neither start nor attach",
                  "in a container, docker run --cap-add=SYS_PTRACE; elsewhere sysctl "
                  "kernel.yama.ptrace_scope=1");
}

}  // namespace sojourn::detail
