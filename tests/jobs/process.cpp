// SPDX-License-Identifier: Apache-2.0
// What a program does with its process: signals that it takes or has blocked, and processes that it
// makes. Usage: job_process [block]: block all signals before run().
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "check.hpp"
#include "shared_cells.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

volatile sig_atomic_t rang = 0;
pthread_t rang_on;

void note(int) {
  rang = rang + 1;
  rang_on = pthread_self();
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

void a_signal_interrupts_what_the_body_does() {
  handle(SIGUSR1, note);
  int ends[2];
  CHECK_EQUAL(pipe(ends), 0);
  const pid_t me = getpid();
  const pid_t other = fork();
  if (other == 0) {
    for (int i = 0; i < 100; ++i) {
      usleep(20'000);
      kill(me, SIGUSR1);
    }
    _exit(0);
  }
  rang = 0;
  char c = 0;
  errno = 0;
  CHECK_EQUAL(read(ends[0], &c, 1), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK(rang > 0);
  CHECK(pthread_equal(rang_on, pthread_self()) != 0);
  kill(other, SIGKILL);
  while (waitpid(other, nullptr, 0) < 0 && errno == EINTR) {
  }
  handle(SIGUSR1, SIG_IGN);
  close(ends[0]), close(ends[1]);
  barrier();
}

sigjmp_buf jump;

void a_handler_may_jump_out_of_a_computation() {
  handle(SIGALRM, [](int) { siglongjmp(jump, 1); });
  if (sigsetjmp(jump, 1) == 0) {
    ualarm(20'000, 0);
    volatile long turns = 0;
    for (;;) (void)turns;
  }
  CHECK_EQUAL(rpc(next(), [](int x) { return x + 1; }, 5).get(), 6);
  handle(SIGALRM, SIG_DFL);
  barrier();
}

/// Runs `body` in a child, and returns its wait status and what it wrote to standard error.
template <class Body>
std::pair<int, std::string> in_child(Body body) {
  int ends[2];
  CHECK_EQUAL(pipe(ends), 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(99);
  }
  close(ends[1]);
  std::string said;
  char part[500];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
    said.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {status, said};
}

void a_child_of_fork_is_no_rank() {
  const auto calls = in_child([] {
    try {
      (void)rpc(next(), [] { return 1; }).get();
    } catch (const error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      _exit(7);
    }
  });
  CHECK(WIFEXITED(calls.first) && WEXITSTATUS(calls.first) == 7);
  CHECK(calls.second.find("made by fork(): it is not the rank") != std::string::npos);
  auto sent_before = rpc(next(), [] { return 8; });
  const auto waits = in_child([&] { (void)sent_before.get(); });
  CHECK(WIFSIGNALED(waits.first) && WTERMSIG(waits.first) == SIGABRT);
  CHECK(waits.second.find("something waits in a process that was made by fork()") !=
        std::string::npos);
  CHECK_EQUAL(sent_before.get(), 8);
  const auto raises = in_child([] { raise(SIGILL); });
  CHECK(WIFSIGNALED(raises.first) && WTERMSIG(raises.first) == SIGILL);
  // A fiber of the rank ends with the call that it serves; its copy ends the child.
  const int ended = rpc(rank_me(), [] {
                      const pid_t rank = getpid();
                      const pid_t child = fork();
                      if (child == 0) {
                        const int nowhere = open("/dev/null", O_WRONLY);
                        dup2(nowhere, STDERR_FILENO);
                        return 0;
                      }
                      int status = 0;
                      waitpid(child, &status, 0);
                      return rank == getpid() && WIFSIGNALED(status) ? WTERMSIG(status) : -1;
                    }).get();
  CHECK_EQUAL(ended, SIGABRT);
  // It may do what else processes do, and die as others do.
#if !SOJOURN_ASAN  // which reports it itself
  const auto dies = in_child([] { *static_cast<volatile int*>(nullptr) = 1; });
  CHECK(WIFSIGNALED(dies.first) && WTERMSIG(dies.first) == SIGSEGV);
#endif
  const auto executes = in_child([] { execl("/bin/sh", "sh", "-c", "exit 5", nullptr); });
  CHECK(WIFEXITED(executes.first) && WEXITSTATUS(executes.first) == 5);
  CHECK_EQUAL(rpc(next(), [](int x) { return x + 1; }, 5).get(), 6);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "block") {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGUSR1);
    sigdelset(&all, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }
  return run(argc, argv, [] {
    check::claim("a signal interrupts what the body does", a_signal_interrupts_what_the_body_does);
    check::claim("a handler may jump out of a computation",
                 a_handler_may_jump_out_of_a_computation);
    check::claim("pages are shared, whatever is blocked", pages_are_shared);
    check::claim("a child of fork() is no rank", a_child_of_fork_is_no_rank);
    return check::verdict();
  });
}
