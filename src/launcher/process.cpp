// SPDX-License-Identifier: Apache-2.0
#include "launcher/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/doctor_hint.hpp"
#include "sojourn/errors.hpp"

extern char** environ;

namespace sojourn::detail {
namespace {

/// What a child that could not become a rank writes before it ends.
struct start_failure {
  int rank;
  int error;
  bool binding;  ///< The core could not be taken; otherwise the program could not be executed.
};

class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct pipe_ends {
  descriptor read;
  descriptor write;
};

pipe_ends make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw error(std::string("cannot make a pipe to a rank: ") + std::strerror(errno) + doctor_hint);
  }
  return {descriptor(ends[0]), descriptor(ends[1])};
}

/// The environment of one rank: this process's, with the job's variables in the place of whatever
/// an enclosing job has set.
class rank_environment {
 public:
  rank_environment(int rank, const launch_plan& plan, const job_fds& fds,
                   const std::string& job_name) {
    std::vector<std::string> own = {
        std::string(rank_variable) + "=" + std::to_string(rank),
        std::string(job_fds_variable) + "=" + std::to_string(fds.segment) + "," +
            std::to_string(fds.heap) + "," + std::to_string(fds.bell),
        std::string("SOJOURN_SHARE=") + (plan.options.share_heap ? "on" : "off"),
        std::string(job_name_variable) + "=" + job_name,
    };
    for (char** entry = environ; *entry != nullptr; ++entry) {
      std::string_view text = *entry;
      std::string_view name = text.substr(0, text.find('=') + 1);
      bool replaced = std::any_of(own.begin(), own.end(), [&](const std::string& variable) {
        return !name.empty() && variable.compare(0, name.size(), name) == 0;
      });
      if (!replaced) texts_.emplace_back(text);
    }
    texts_.insert(texts_.end(), own.begin(), own.end());
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }

  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// All that a child needs between fork and exec, where it may not allocate.
struct child_context {
  int rank;
  pid_t launcher;
  int input;  ///< -1: the launcher's own.
  int output;
  int errors;
  int failures;
  int core;  ///< -1: not bound.
  cpu_set_t* cores;
  std::size_t cores_bytes;
  job_fds fds;
  const job_segment* job;
  const char* program;
  char** arguments;
  char** environment;
  const process_state* state;
};

[[noreturn]] void become_rank(const child_context& c) {
  // The launcher may have died before this process asked to die with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != c.launcher) _exit(127);

  if (c.input >= 0) dup2(c.input, STDIN_FILENO);
  dup2(c.output, STDOUT_FILENO);
  dup2(c.errors, STDERR_FILENO);
  fcntl(c.fds.segment, F_SETFD, 0);
  if (c.fds.heap >= 0) fcntl(c.fds.heap, F_SETFD, 0);
  fcntl(c.fds.bell, F_SETFD, 0);
  if (c.job->has_several_hosts()) {
    const int first = static_cast<int>(c.job->first_here);
    const int end = first + static_cast<int>(c.job->ranks_here);
    for (int rank = first; rank < end; ++rank) fcntl(c.job->ranks[rank].bell, F_SETFD, 0);
    fcntl(c.job->ranks[c.rank].channel, F_SETFD, 0);
  }

  start_failure failure{c.rank, 0, false};
  if (c.core >= 0 && sched_setaffinity(0, c.cores_bytes, c.cores) != 0) {
    failure.binding = true;
  } else {
    c.state->restore_in_child();
    environ = c.environment;
    // The plan has found the file, so PATH is not searched; but execvp has a script without #! run
    // by the shell.
    execvp(c.program, c.arguments);
  }
  failure.error = errno;
  while (write(c.failures, &failure, sizeof failure) < 0 && errno == EINTR) {
  }
  _exit(127);
}

/// Waits for the end of a process that was sent SIGKILL. Bounded: the kernel may not be able to end
/// one (a hung file system), and the launcher must not wait for that.
void wait_for_killed(pid_t pid, int patience_ms) {
  for (int i = 0; i < patience_ms && waitpid(pid, nullptr, WNOHANG) == 0; ++i) poll(nullptr, 0, 1);
}

void end_ranks(const std::vector<started_rank>& ranks) {
  constexpr int patience_ms = 400;
  for (const started_rank& rank : ranks) kill(rank.pid, SIGKILL);
  for (const started_rank& rank : ranks) {
    wait_for_killed(rank.pid, patience_ms);
    close(rank.output);
    close(rank.errors);
  }
}

/// Reads from `failures` until it ends, or one child could not become a rank: true then. An exec
/// may take as long as a file system does, so signals that end the job are heard meanwhile.
bool read_failure(int failures, const sigset_t& ending_signals, start_failure& failure) {
  descriptor signals(signalfd(-1, &ending_signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals.get() < 0) {
    throw error(std::string("cannot wait for signals: ") + std::strerror(errno));
  }
  for (;;) {
    pollfd waits[] = {{failures, POLLIN, 0}, {signals.get(), POLLIN, 0}};
    if (poll(waits, 2, -1) < 0) continue;
    signalfd_siginfo info;
    if (waits[1].revents != 0 &&
        read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      throw start_interrupted{static_cast<int>(info.ssi_signo)};
    }
    if (waits[0].revents == 0) continue;
    ssize_t count = read(failures, &failure, sizeof failure);
    if (count < 0 && errno == EINTR) continue;
    return count == static_cast<ssize_t>(sizeof failure);
  }
}

std::string describe(const start_failure& failure, const launch_plan& plan) {
  std::string reason = std::strerror(failure.error);
  if (failure.binding) {
    return "cannot bind rank " + std::to_string(failure.rank) + " to core " +
           std::to_string(
               plan.core_of_rank[static_cast<std::size_t>(failure.rank - plan.first_here)]) +
           ": " + reason + "; --no-bind starts the job unbound";
  }
  return "cannot start '" + plan.parts[part_of_rank(plan, failure.rank)].command.front() +
         "': " + reason;
}

using cpu_set_owner = std::unique_ptr<cpu_set_t, decltype([](cpu_set_t* set) { CPU_FREE(set); })>;

}  // namespace

rlim_t open_files_needed(int rank_count) {
  // Two pipes a rank, both ends of the last rank's for a moment, and some of our own.
  constexpr rlim_t of_launcher = 16;
  rlim_t open_already = 3;
  if (DIR* folder = opendir("/proc/self/fd")) {
    open_already = 0;
    while (readdir(folder) != nullptr) ++open_already;
    closedir(folder);
  }
  return open_already + 2 * static_cast<rlim_t>(rank_count) + of_launcher;
}

process_state::process_state(rlim_t open_files) {
  getrlimit(RLIMIT_NOFILE, &files_before_);
  if (files_before_.rlim_cur < open_files) {
    rlimit wanted = files_before_;
    wanted.rlim_cur = open_files;
    if (files_before_.rlim_max < open_files || setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
      throw error("that many ranks need " + std::to_string(open_files) +
                  " open files and the limit is " + std::to_string(files_before_.rlim_max) +
                  "; raise it with 'ulimit -n " + std::to_string(open_files) + "'" + doctor_hint);
    }
  }

  // A descriptor below 3 that is closed would become a pipe or the job's memory.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  }

  // Ctrl-C ends the job even when a shell without job control started it in the background and so
  // had it ignored. nohup, which ignores SIGHUP, is respected.
  sigemptyset(&ending_);
  for (int signal : {SIGINT, SIGTERM}) sigaddset(&ending_, signal);
  for (int signal : {SIGHUP, SIGQUIT}) {
    struct sigaction before;
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&ending_, signal);
  }
  awaited_ = ending_;
  for (int signal : {SIGCHLD, SIGUSR1}) sigaddset(&awaited_, signal);
  pthread_sigmask(SIG_BLOCK, &awaited_, &mask_before_);

  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &pipe_before_);
  // A limit on file sizes (ulimit -f) then makes calls fail, which can be said.
  sigaction(SIGXFSZ, &action, &file_size_before_);
  action.sa_handler = SIG_DFL;  // If SIGCHLD were ignored, waitpid() would get no exit status.
  sigaction(SIGCHLD, &action, &child_before_);

  // What a dead rank leaves running becomes our child, so that it can be ended with the job.
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

process_state::~process_state() {
  prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_);
  restore_in_child();
}

void process_state::restore_in_child() const {
  setrlimit(RLIMIT_NOFILE, &files_before_);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGXFSZ, &file_size_before_, nullptr);
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::vector<started_rank> start_ranks(const launch_plan& plan, const job_segment& job,
                                      const job_fds& fds, const process_state& state,
                                      const std::string& job_name,
                                      const std::vector<pid_t>& strangers) {
  std::vector<std::vector<char*>> arguments;
  for (const planned_part& part : plan.parts) {
    std::vector<char*>& words = arguments.emplace_back();
    for (const std::string& word : part.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
  }

  descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.get() < 0) throw error(std::string("cannot open /dev/null: ") + std::strerror(errno));
  // One pipe for all: it ends when the last child has become a rank, which closes its copy.
  pipe_ends failures = make_pipe();

  std::size_t core_count = 1;
  for (int core : plan.core_of_rank) {
    core_count = std::max(core_count, static_cast<std::size_t>(core) + 1);
  }
  cpu_set_owner cores(CPU_ALLOC(core_count));
  std::size_t cores_bytes = CPU_ALLOC_SIZE(core_count);

  std::vector<started_rank> ranks;
  ranks.reserve(static_cast<std::size_t>(plan.ranks_here));
  try {
    for (int here = 0; here < plan.ranks_here; ++here) {
      const int rank = plan.first_here + here;
      pipe_ends output = make_pipe();
      pipe_ends errors = make_pipe();
      rank_environment environment(rank, plan, fds, job_name);
      std::size_t part = part_of_rank(plan, rank);
      int core = plan.core_of_rank.empty() ? -1 : plan.core_of_rank[static_cast<std::size_t>(here)];
      CPU_ZERO_S(cores_bytes, cores.get());
      if (core >= 0) CPU_SET_S(static_cast<std::size_t>(core), cores_bytes, cores.get());
      child_context context{rank,
                            getpid(),
                            rank == 0 ? -1 : nothing.get(),
                            output.write.get(),
                            errors.write.get(),
                            failures.write.get(),
                            core,
                            cores.get(),
                            cores_bytes,
                            fds,
                            &job,
                            plan.parts[part].program.c_str(),
                            arguments[part].data(),
                            environment.data(),
                            &state};
      pid_t pid = fork();
      if (pid < 0) {
        throw error(
            "cannot start rank " + std::to_string(rank) + " of " +
            std::to_string(plan.options.rank_count) + " (" + std::strerror(errno) +
            "): start fewer ranks, or raise the limits on processes (ulimit -u) and memory" +
            doctor_hint);
      }
      if (pid == 0) become_rank(context);
      fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
      fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
      ranks.push_back({pid, output.read.release(), errors.read.release()});
    }

    failures.write = descriptor();
    start_failure failure;
    if (read_failure(failures.read.get(), state.ending_signals(), failure)) {
      throw error(describe(failure, plan));
    }
  } catch (...) {
    end_ranks(ranks);
    // A wrapper may have started something already.
    end_adopted(strangers);
    throw;
  }
  return ranks;
}

namespace {

bool holds(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

/// "sleep (pid 17)", or as much of it as is known.
std::string description_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  const std::string number = "pid " + std::to_string(pid);
  return name.empty() ? number : name + " (" + number + ")";
}

/// False where it is not mounted, or is that of another PID namespace, whose numbers mean nothing
/// here.
bool proc_has_our_numbers() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self", failure) == std::to_string(getpid());
}

/// Where /proc does not tell, each number is tried: only what is a child can be waited for. Numbers
/// are given in turn, and children get theirs after this process.
std::vector<pid_t> children_by_number() {
  constexpr pid_t largest = 1 << 22;  // on systems with 64 bits
  std::vector<pid_t> children;
  auto try_all = [&](pid_t after, pid_t before) {
    for (pid_t pid = after + 1; pid < before; ++pid) {
      siginfo_t info;
      if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        children.push_back(pid);
    }
  };
  const pid_t newest = _Fork();
  if (newest == 0) _exit(0);
  if (newest > 0) waitpid(newest, nullptr, 0);
  if (newest > getpid()) {
    try_all(getpid(), newest);
  } else {
    try_all(getpid(), largest);
    try_all(0, newest > 0 ? newest : getpid());
  }
  return children;
}

std::vector<pid_t> children_in_proc() {
  std::vector<pid_t> children;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    // "pid (name) state parent …"; the name may hold anything, so count from its last bracket.
    std::size_t bracket = text.rfind(')');
    if (bracket == std::string::npos || bracket + 4 >= text.size()) continue;
    if (std::atoi(text.c_str() + bracket + 4) == getpid())
      children.push_back(std::atoi(name.c_str()));
  }
  return children;
}

}  // namespace

std::vector<pid_t> adopted_children(const std::vector<pid_t>& except) {
  siginfo_t info;
  // As a rule there is no child, and the search would be a waste of time.
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return {};
  std::vector<pid_t> children = proc_has_our_numbers() ? children_in_proc() : children_by_number();
  std::erase_if(children, [&](pid_t pid) { return holds(except, pid); });
  return children;
}

void reap_adopted(const std::vector<pid_t>& except) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    // A child in `except` hides the ones after it; they are found when the job ends.
    if (holds(except, info.si_pid)) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

std::vector<std::string> end_adopted(const std::vector<pid_t>& except) {
  constexpr int patience_ms = 20;
  std::vector<std::string> ended;
  // Each round ends one generation and adopts the next.
  for (int round = 0; round < 8; ++round) {
    std::vector<pid_t> running = adopted_children(except);
    std::erase_if(running, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    if (running.empty()) break;
    for (pid_t pid : running) {
      ended.push_back(description_of(pid));
      kill(pid, SIGKILL);
    }
    for (pid_t pid : running) wait_for_killed(pid, patience_ms);
  }
  return ended;
}

}  // namespace sojourn::detail
