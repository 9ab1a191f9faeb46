// SPDX-License-Identifier: Apache-2.0
// Messages to a rank, as run_delivered.cpp delivers them, chosen by libFuzzer for what they reach.
// Each is delivered by a child of the rank, whose counts of what ran come back to it, also when a
// refusal ends the child.
//
//   fuzz_deliver -max_total_time=60 folder
#include <sojourn/sojourn.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "deliver_target.hpp"

extern "C" {
int LLVMFuzzerRunDriver(int* argc, char*** argv, int (*run)(const std::uint8_t*, std::size_t));
int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
int LLVMFuzzerInitialize(int* argc, char*** argv);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size, std::size_t most,
                                    unsigned seed);
std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_bytes,
                                      const std::uint8_t* b, std::size_t b_bytes, std::uint8_t* out,
                                      std::size_t most, unsigned seed);
// The compiler's counts of what ran.
extern char counts_first __asm__("__start___sancov_cntrs");
extern char counts_end __asm__("__stop___sancov_cntrs");
}

namespace {

using fuzz::message;

constexpr unsigned seconds_a_message = 60;
constexpr int refused = 42;

/// Where a child leaves its counts.
char* left_counts = nullptr;
std::size_t count_bytes() { return static_cast<std::size_t>(&counts_end - &counts_first); }
void leave_counts() { std::memcpy(left_counts, &counts_first, count_bytes()); }

/// What a child says: told only of one that finds something.
int errors = -1;

bool share_with_children() {
  errors = memfd_create("errors", MFD_CLOEXEC);
  void* room =
      mmap(nullptr, count_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  left_counts = static_cast<char*>(room);
  return errors >= 0 && room != MAP_FAILED;
}

void tell_what_it_said() {
  char text[4096];
  const ssize_t bytes = pread(errors, text, sizeof text, 0);
  if (bytes > 0) (void)!write(2, text, static_cast<std::size_t>(bytes));
}

[[noreturn]] void deliver_in_child(const message& m) {
  dup2(errors, 2);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) signal(s, SIG_DFL);
  signal(SIGABRT, [](int) {
    const char* words = sojourn::detail::last_words();
    if (!fuzz::is_refusal(words)) {
      signal(SIGABRT, SIG_DFL);
      return;  // abort() raises it again
    }
    leave_counts();
    _exit(refused);
  });
  sojourn::detail::last_words_are_reported(false);
  alarm(seconds_a_message);
  fuzz::deliver(m);
  if (fuzz::is_too_short(m)) {
    std::fprintf(stderr, "a message that is too short for its kind was believed\n");
    _exit(4);
  }
  leave_counts();
  _exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const message m(bytes, bytes + size);
  if (size < fuzz::head_bytes) return -1;
  (void)!ftruncate(errors, 0);
  lseek(errors, 0, SEEK_SET);
  const pid_t child = fuzz::fork_as_rank();
  if (child < 0) std::abort();
  if (child == 0) deliver_in_child(m);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {  // libFuzzer has a timer
  }
  const int end = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (end == 0 || end == refused) {
    std::memcpy(&counts_first, left_counts, count_bytes());
    return 0;
  }
  tell_what_it_said();
  std::fprintf(stderr, "a message ended the rank by %s %d and not by a refusal: %s\n",
               WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : end, fuzz::told(m).c_str());
  std::abort();
}

/// Handlers are not changed: those of other units of the program take what their callers' compiler
/// has checked, and would call any function of the program.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937_64 random(seed);
  message m(bytes, bytes + size);
  if (size < fuzz::head_bytes || random() % 16 == 0) m = fuzz::some_message(random);
  fuzz::mutate(m, random);
  if (m.size() > most) m.resize(most);
  std::memcpy(bytes, m.data(), m.size());
  return m.size();
}
/// Of two messages of one handler, the first's head and the other's end.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_bytes,
                                                 const std::uint8_t* b, std::size_t b_bytes,
                                                 std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
  std::mt19937_64 random(seed);
  if (a_bytes > most) a_bytes = most;
  if (a_bytes == 0) return 0;
  std::memcpy(out, a, a_bytes);
  if (a_bytes <= fuzz::head_bytes || b_bytes <= fuzz::head_bytes || std::memcmp(a, b, 2) != 0) {
    return a_bytes;
  }
  const std::size_t both = std::min(a_bytes, b_bytes);
  const std::size_t from = fuzz::head_bytes + random() % (both - fuzz::head_bytes);
  std::memcpy(out + from, b + from, both - from);
  return a_bytes;
}

/// libFuzzer's main() calls this first. What it would do then is done by the main fiber of a rank.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static bool is_in_rank = false;
  if (is_in_rank) return 0;
  is_in_rank = true;
  // Trying whether userfaultfd works needs handlers of signals that libFuzzer takes.
  setenv("SOJOURN_SHARED_PROTECTION", "mprotect", 1);
  const int not_started = sojourn::run(*argc, *argv, [&] {
    sojourn::finish([&] {
      if (!fuzz::keep_shared_memory_private() || !share_with_children()) _exit(2);
      fuzz::open_what_messages_name();
      // libFuzzer takes only those that nobody has.
      for (int s : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(s, SIG_DFL);
      const int status = LLVMFuzzerRunDriver(argc, argv, LLVMFuzzerTestOneInput);
      std::fflush(nullptr);
      _exit(status);  // its rings are no rings any more
    });
    return 0;
  });
  std::exit(not_started);
}
