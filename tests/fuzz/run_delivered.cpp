// SPDX-License-Identifier: Apache-2.0
// Feeds a rank with messages of every kind that are nearly as they should be. Each must be
// delivered, or end the rank with a report that names it: no crash, no hang. The rank that delivers
// is a child process, and goes on with the next message until one ends it.
//
//   fuzz_deliver_test [--seed N] [--first N] [--count N] [--verbose 1]
#include <sojourn/sojourn.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "deliver_target.hpp"

namespace {

using fuzz::message;

// Of one message, under an emulator or valgrind as well.
constexpr unsigned seconds_a_message = 60;

struct {
  unsigned long seed = 1;
  long first = 0;
  long count = 2000;
  bool verbose = false;
} wanted;

/// The same in both processes.
struct shared_state {
  long running;
};

message message_of(long number) {
  std::mt19937_64 random(wanted.seed * 1'000'003ul + static_cast<unsigned long>(number));
  message m = fuzz::some_message(random);
  // Some are left as they are: a generator whose messages are all refused at once tests little.
  if (random() % 8 != 0) fuzz::mutate(m, random);
  return m;
}

/// Delivers from `first` on. Does not return.
[[noreturn]] void deliver_from(long first, shared_state* state, int errors) {
  dup2(errors, 2);
  sojourn::detail::last_words_are_reported(false);
  for (int s : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(s, SIG_DFL);
  try {
    for (long i = first; i < wanted.first + wanted.count; ++i) {
      state->running = i;
      alarm(seconds_a_message);
      const message m = message_of(i);
      fuzz::deliver(m);
      if (fuzz::is_too_short(m)) {
        std::fprintf(stderr, "a message that is too short for its kind was believed\n");
        _exit(4);
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "an exception came out of delivery: %s\n", e.what());
    _exit(3);
  }
  _exit(0);
}

std::string text_of(int file) {
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(pread(file, text.data(), text.size(), 0), 0)));
  return text;
}

int feed() {
  if (!fuzz::keep_shared_memory_private()) return 2;
  auto* state = static_cast<shared_state*>(mmap(
      nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const int errors = memfd_create("errors", MFD_CLOEXEC);
  if (state == MAP_FAILED || errors < 0) return 2;
  fuzz::open_what_messages_name();
  const long end = wanted.first + wanted.count;
  long refused = 0;
  for (long next = wanted.first; next < end; ++next) {
    std::fflush(nullptr);
    (void)!ftruncate(errors, 0);
    lseek(errors, 0, SEEK_SET);
    const pid_t child = fuzz::fork_as_rank();
    if (child < 0) return 2;
    if (child == 0) deliver_from(next, state, errors);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    const std::string said = text_of(errors);
    next = state->running;
    if (wanted.verbose) {
      std::printf("%ld: %s\n%s\n", next, fuzz::told(message_of(next)).c_str(), said.c_str());
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && fuzz::is_refusal(said)) {
      ++refused;
      continue;
    }
    std::fprintf(stderr,
                 "message %ld ended the rank by %s %d and not by a refusal: %s\n%s\n"
                 "replay: fuzz_deliver_test --seed %lu --first %ld --count 1\n",
                 next, WIFSIGNALED(status) ? "signal" : "exit status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                 fuzz::told(message_of(next)).c_str(), said.c_str(), wanted.seed, next);
    return 1;
  }
  std::printf("%ld messages; %ld of them ended their rank with a report\n", wanted.count, refused);
  // Neither must be rare.
  const bool enough =
      wanted.count < 1000 || (refused > wanted.count / 10 && refused < wanted.count / 10 * 9);
  if (!enough) std::fprintf(stderr, "of %ld messages %ld are refused\n", wanted.count, refused);
  return enough ? 0 : 1;
}

int misuse() {
  std::fprintf(stderr,
               "fuzz_deliver_test: options are --seed, --first, --count and --verbose, each with a "
               "number\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return misuse();
    const long number = std::atol(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) {
      wanted.seed = static_cast<unsigned long>(number);
    } else if (std::strcmp(argv[i], "--first") == 0) {
      wanted.first = number;
    } else if (std::strcmp(argv[i], "--count") == 0) {
      wanted.count = number;
    } else if (std::strcmp(argv[i], "--verbose") == 0) {
      wanted.verbose = number != 0;
    } else {
      return misuse();
    }
  }
  // Trying whether userfaultfd works needs handlers of signals that are left alone here.
  setenv("SOJOURN_SHARED_PROTECTION", "mprotect", 1);
  return sojourn::run(argc, argv, [] {
    int status = 0;
    // Its scope is one that messages name.
    sojourn::finish([&] {
      status = feed();
      std::fflush(nullptr);
      _exit(status);  // its rings are no rings any more
    });
    return status;
  });
}
