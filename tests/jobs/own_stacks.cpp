// SPDX-License-Identifier: Apache-2.0
// Coroutines on stacks that the program makes (makecontext). Usage: job_own_stacks
// [fork|activation]: waits in one where frames would have to be moved.
#include <ucontext.h>

#include <chrono>
#include <memory>
#include <string>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

/// Adds up squares that another rank works out, and gives its caller the turn after each.
struct coroutine {
  static constexpr std::size_t bytes = 256 << 10;

  ucontext_t caller{};
  ucontext_t own{};
  std::unique_ptr<char[]> stack{new char[bytes]};
  rank_t asked;
  bool migrates;
  long sum = 0;

  coroutine(rank_t rank, bool goes_there) : asked(rank), migrates(goes_there) {
    running = this;
    getcontext(&own);
    own.uc_stack.ss_sp = stack.get();
    own.uc_stack.ss_size = bytes;
    own.uc_link = &caller;
    makecontext(&own, body, 0);
  }
  void resume() { swapcontext(&caller, &own); }

  static coroutine* running;
  static void body() {
    coroutine& self = *running;
    for (long i = 0; i < 4; ++i) {
      if (self.migrates) migrate_to(self.asked);
      self.sum += rpc(
                      self.asked,
                      [](long x) {
                        sleep_for(std::chrono::milliseconds(1));
                        return x * x;
                      },
                      i)
                      .get();
      swapcontext(&self.own, &self.caller);
    }
  }
};
coroutine* coroutine::running;

long squares(rank_t asked, bool migrates) {
  coroutine c(asked, migrates);
  for (int i = 0; i < 4; ++i) c.resume();
  return c.sum;
}

void they_wait_in_main_while_others_run() {
  auto other = rpc(rank_me(), [] {
    int turns = 0;
    for (; turns < 20; ++turns) yield();
    return turns;
  });
  CHECK_EQUAL(squares(next(), false), 14);
  CHECK_EQUAL(other.get(), 20);
  barrier();
}

void they_wait_in_calls() {
  CHECK_EQUAL(rpc(next(), [] { return squares(rank_me(), false); }).get(), 14);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : "";
  return run(argc, argv, [&] {
    if (where == "fork") return static_cast<int>(fork(squares, next(), false).get());
    if (where == "activation") return static_cast<int>(activate(squares, next(), true));
    check::claim("they wait in main while others run", they_wait_in_main_while_others_run);
    check::claim("they wait in calls", they_wait_in_calls);
    return check::verdict();
  });
}
