// SPDX-License-Identifier: Apache-2.0
// Forks in a program into whose functions the compiler has put calls for a profile. Children that
// block have links, whose code is the runtime's alone.
#include "check.hpp"

using namespace sojourn;

namespace {

long fib(long n) {
  if (n < 2) return n;
  auto a = fork(fib, n - 1);
  const long b = fib(n - 2);
  return a.get() + b;
}
long blocking_fib(long n) {
  if (n < 2) {
    if (n == 0) yield();
    return n;
  }
  auto a = fork(blocking_fib, n - 1);
  const long b = blocking_fib(n - 2);
  return a.get() + b;
}

void children_return_what_they_compute() { CHECK_EQUAL(fib(16), 987); }
void children_that_block_do_too() {
  for (int i = 0; i < 20; ++i) CHECK_EQUAL(blocking_fib(12), 144);
}
void calls_and_moves_work() {
  const rank_t next = (rank_me() + 1) % rank_count();
  CHECK_EQUAL(rpc(next, [](long n) { return fib(n); }, 12L).get(), 144);
  const auto there = [](rank_t to) {
    migrate_to(to);
    return fib(12);
  };
  CHECK_EQUAL(activate(there, next), 144);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("children return what they compute", children_return_what_they_compute);
    check::claim("children that block do, too", children_that_block_do_too);
    check::claim("calls and moves work", calls_and_moves_work);
    return check::verdict();
  });
}
