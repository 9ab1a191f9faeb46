// SPDX-License-Identifier: Apache-2.0
#include "doctor/trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

namespace sojourn::detail {
namespace {

constexpr int patience_seconds = 3;

/// Writes how the attempt went: reason, a NUL, note.
void say(int fd, const attempt_result& result) {
  std::string text = result.reason + '\0' + result.note;
  // At most PIPE_BUF bytes, which are written and read at once.
  (void)!write(fd, text.data(), std::min(text.size(), std::size_t{PIPE_BUF}));
}

[[noreturn]] void run_attempt(const std::function<attempt_result()>& attempt, int answer) {
  setpgid(0, 0);
  for (int signal : {SIGALRM, SIGCHLD, SIGPIPE, SIGSYS, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  alarm(patience_seconds);
  try {
    say(answer, attempt());
  } catch (const std::bad_alloc&) {
    // Short enough for a string to hold without memory of its own.
    say(answer, {"out of memory", ""});
  } catch (const std::exception& e) {
    say(answer, {e.what(), ""});
  }
  _exit(0);
}

/// The answer, or "" when the process has ended, or too much time has passed, before it answered.
std::string read_answer(int fd) {
  pollfd wait{fd, POLLIN, 0};
  int ready;
  while ((ready = poll(&wait, 1, (patience_seconds + 1) * 1000)) < 0 && errno == EINTR) {
  }
  char text[PIPE_BUF];
  ssize_t count = ready > 0 ? read(fd, text, sizeof text) : 0;
  return std::string(text, count > 0 ? static_cast<std::size_t>(count) : 0);
}

/// While this object exists, orphans of this process's children become its own children, for which
/// it can wait.
class adopting_orphans {
 public:
  adopting_orphans() {
    prctl(PR_GET_CHILD_SUBREAPER, &before_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~adopting_orphans() { prctl(PR_SET_CHILD_SUBREAPER, before_); }
  adopting_orphans(const adopting_orphans&) = delete;
  adopting_orphans& operator=(const adopting_orphans&) = delete;

 private:
  int before_ = 0;
};

}  // namespace

trial try_in_child(const std::function<attempt_result()>& attempt) {
  adopting_orphans adopts;
  int answer[2];
  if (pipe2(answer, O_CLOEXEC) != 0) return {false, failed("pipe").reason, ""};
  pid_t child = fork();
  if (child == 0) {
    close(answer[0]);
    run_attempt(attempt, answer[1]);
  }
  int reason = errno;
  close(answer[1]);
  if (child < 0) {
    close(answer[0]);
    errno = reason;
    return {false, failed("fork").reason, ""};
  }
  // The child calls this, too: the group must exist before it is killed, whoever is first.
  setpgid(child, child);
  std::string text = read_answer(answer[0]);
  close(answer[0]);
  // What the attempt has left running in its group is killed, too.
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // A zombie still counts as a process of this user.
  while (waitpid(-child, nullptr, 0) > 0 || errno == EINTR) {
  }
  std::size_t end = text.find('\0');
  if (end != std::string::npos) return {true, text.substr(0, end), text.substr(end + 1)};
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == 0 || signal == SIGKILL || signal == SIGALRM) {
    return {true, "the process that tried it gave no answer", ""};
  }
  return {true, std::string("the process that tried it was killed: ") + strsignal(signal), ""};
}

attempt_result failed(const std::string& call) { return {call + ": " + std::strerror(errno), ""}; }

int fork_helper(const std::function<void()>& body) {
  pid_t child = fork();
  if (child != 0) return child;
  alarm(patience_seconds);
  body();
  _exit(0);
}

}  // namespace sojourn::detail
