// SPDX-License-Identifier: Apache-2.0
#include "driver/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

namespace bench {
namespace fs = std::filesystem;

namespace {

/// How long a child may take to end by itself after SIGTERM.
constexpr int terminate_wait_ms = 2000;

int exit_status(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

[[noreturn]] void become(const arguments& argv, const environment& extra, int output_fd,
                         int error_fd) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(output_fd < 0 ? nothing : output_fd, STDOUT_FILENO);
  for (const auto& [name, value] : extra) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t told = write(error_fd, &why, sizeof why);
  _exit(127);
}

/// Nanoseconds the kernel has run one thread; exact where the kernel keeps schedstat.
double thread_cpu_seconds(const fs::path& task) {
  std::ifstream schedstat(task / "schedstat");
  double nanoseconds = 0;
  if (schedstat >> nanoseconds) return nanoseconds / 1e9;
  std::ifstream stat(task / "stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user_ticks = 0;
  double system_ticks = 0;
  fields >> user_ticks >> system_ticks;
  return (user_ticks + system_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

pid_t parent_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("PPid:", 0) == 0) return std::atoi(line.c_str() + 5);
  return 0;
}

std::vector<pid_t> tree_of(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0) children.emplace(parent_of(pid), pid);
  }
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [first, last] = children.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

}  // namespace

child_process::child_process(const arguments& argv, const environment& extra, int output_fd) {
  // The pipe closes on exec; whatever comes through it says why there was none.
  int failed[2];
  if (pipe2(failed, O_CLOEXEC) != 0) throw failure("cannot make a pipe for " + argv[0]);
  pid_ = fork();
  if (pid_ == 0) become(argv, extra, output_fd, failed[1]);
  close(failed[1]);
  int why = 0;
  const bool told = pid_ < 0 || read(failed[0], &why, sizeof why) == sizeof why;
  close(failed[0]);
  if (!told) return;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  throw failure("cannot start " + argv[0] + ": " + std::strerror(why));
}

child_process::~child_process() {
  if (!running()) return;
  kill(pid_, SIGTERM);
  for (int waited_ms = 0; waited_ms < terminate_wait_ms && running(); waited_ms += 10)
    usleep(10'000);
  if (running()) kill(pid_, SIGKILL);
  wait();
}

bool child_process::running() {
  if (!reaped_ && waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

int child_process::wait() {
  while (!reaped_) {
    if (waitpid(pid_, &status_, 0) == pid_ || errno != EINTR) reaped_ = true;
  }
  return exit_status(status_);
}

captured run_and_capture(const arguments& argv, const environment& extra) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) throw failure("cannot make a pipe for " + argv[0]);
  captured result;
  child_process child(argv, extra, output[1]);
  close(output[1]);
  char block[4096];
  for (ssize_t count; (count = read(output[0], block, sizeof block)) > 0;)
    result.output.append(block, static_cast<std::size_t>(count));
  close(output[0]);
  result.status = child.wait();
  return result;
}

double tree_cpu_seconds(pid_t root) {
  double seconds = 0;
  for (const pid_t pid : tree_of(root)) {
    std::error_code gone;  // A process may end while it is looked at.
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone))
      seconds += thread_cpu_seconds(task.path());
  }
  return seconds;
}

bool in_path(const std::string& command) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((fs::path(folder) / command).c_str(), X_OK) == 0) return true;
  return false;
}

temporary_directory::temporary_directory() {
  std::string name = (fs::temp_directory_path() / "sojourn-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw failure("cannot make a directory like " + name);
  path_ = name;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace bench
