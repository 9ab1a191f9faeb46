// SPDX-License-Identifier: Apache-2.0
// What belongs to a fiber and what to the rank: rounding modes, exceptions being handled, errno and
// thread-locals, while fibers interleave and migrate.
#include <cerrno>
#include <cfenv>
#include <cmath>
#include <exception>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

void yields(int n) {
  for (int i = 0; i < n; ++i) yield();
}

/// 1/3 as the processor rounds now, kept from the compiler.
double third() {
  volatile double one = 1, three = 3;
  volatile const double quotient = one / three;  // here, and not where it is used
  return quotient;
}
const double nearest_third = third();

int other_fibers_rounding() {
  CHECK_EQUAL(third(), nearest_third);
  return std::fegetround();
}

void rounding_belongs_to_the_fiber() {
  // In a fiber that suspends with it set.
  auto f = rpc(rank_me(), [] {
    std::fesetround(FE_UPWARD);
    bool kept = true;
    for (int i = 0; i < 20; ++i) {
      yield();
      kept &= std::fegetround() == FE_UPWARD && third() > nearest_third;
    }
    return kept;
  });
  auto g = rpc(rank_me(), [] {
    std::fesetround(FE_DOWNWARD);
    bool kept = true;
    for (int i = 0; i < 20; ++i) {
      yield();
      kept &= std::fegetround() == FE_DOWNWARD;
    }
    std::fesetround(FE_TONEAREST);
    return kept;
  });
  for (int i = 0; i < 25; ++i) {
    CHECK_EQUAL(std::fegetround(), FE_TONEAREST);
    CHECK_EQUAL(rpc(rank_me(), other_fibers_rounding).get(), FE_TONEAREST);
  }
  CHECK(f.get());
  CHECK(g.get());
  CHECK_EQUAL(std::fegetround(), FE_TONEAREST);
  // In a fiber that ends with it set, having blocked or not.
  rpc(next(), [] { std::fesetround(FE_UPWARD); }).get();
  rpc(next(), [] {
    yields(3);
    std::fesetround(FE_TOWARDZERO);
  }).get();
  barrier();
  CHECK_EQUAL(std::fegetround(), FE_TONEAREST);
  CHECK_EQUAL(rpc(next(), other_fibers_rounding).get(), FE_TONEAREST);
  CHECK_EQUAL(rpc(rank_me(), other_fibers_rounding).get(), FE_TONEAREST);
  std::fesetround(FE_TONEAREST);
}

void rounding_travels() {
  if (rank_me() != 0) return;
  auto modes = activate(
      [](rank_t there) {
        std::fesetround(FE_UPWARD);
        migrate_to(there);
        int away = std::fegetround();
        double up = third();
        yields(2);
        migrate_to(0);
        int back = std::fegetround();
        std::fesetround(FE_TONEAREST);
        return std::tuple(away, back, up > nearest_third);
      },
      last());
  CHECK(modes == std::tuple(FE_UPWARD, FE_UPWARD, true));
  CHECK_EQUAL(rpc(last(), other_fibers_rounding).get(), FE_TONEAREST);
#if defined(__x86_64__)
  unsigned flushed = activate(
      [](rank_t there) {
        unsigned before = _mm_getcsr();
        _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
        migrate_to(there);
        unsigned away = _mm_getcsr() & 0x8040;
        _mm_setcsr(before);
        return away;
      },
      last());
  CHECK_EQUAL(flushed, 0x8040u);
#endif
}

thread_local int of_this_thread = 0;
thread_local std::array<char, 64> more_of_it{};

void errno_and_thread_locals_are_the_ranks() {
  // Their addresses are the same on every rank, so one that a compiler kept is right.
  auto here = std::pair(reinterpret_cast<std::uint64_t>(&errno),
                        reinterpret_cast<std::uint64_t>(&of_this_thread));
  for (rank_t r = 0; r < rank_count(); ++r) {
    auto there = rpc(r, [] {
                   return std::pair(reinterpret_cast<std::uint64_t>(&errno),
                                    reinterpret_cast<std::uint64_t>(&of_this_thread));
                 }).get();
    CHECK(there == here);
  }
  of_this_thread = 100 + rank_me();
  more_of_it[5] = static_cast<char>('a' + rank_me());
  barrier();
  if (rank_me() == 0) {
    auto seen = activate(
        [](rank_t there) {
          int a = of_this_thread;
          migrate_to(there);
          int b = of_this_thread;
          char c = more_of_it[5];
          errno = 7;
          migrate_to(0);
          return std::tuple(a, b, c, of_this_thread);
        },
        last());
    CHECK(seen == std::tuple(100, 100 + last(), static_cast<char>('a' + last()), 100));
  }
  barrier();
  of_this_thread = 0;
}

struct numbered : std::runtime_error {
  int number;
  explicit numbered(int n) : std::runtime_error("number " + std::to_string(n)), number(n) {}
};

int handles_while_others_do(int n) {
  try {
    throw numbered(n);
  } catch (const numbered& outer) {
    yields(1 + n % 3);
    try {
      try {
        throw std::logic_error("inner " + std::to_string(n));
      } catch (...) {
        yields(1 + n % 5);
        throw;  // the innermost of this fiber, whoever threw meanwhile
      }
    } catch (const std::logic_error& inner) {
      yields(n % 4);
      if (inner.what() != "inner " + std::to_string(n)) return -1;
    }
    rpc(next(), [] {
      try {
        throw 5;
      } catch (int) {
        yields(2);
      }
    }).get();
    try {
      throw;
    } catch (const numbered& again) {
      if (&again != &outer || again.number != n) return -2;
    }
    if (std::uncaught_exceptions() != 0) return -3;
    return outer.number;
  }
}

void catch_blocks_interleave() {
  std::vector<future<int>> all;
  for (int i = 0; i < 60; ++i) all.push_back(rpc(rank_me(), handles_while_others_do, i));
  for (int i = 0; i < 60; ++i) CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), i);
}

int unwinding_suspends(int n) {
  int seen = 0;
  struct waits {
    int& counted;
    int steps;
    ~waits() {
      yields(steps);
      counted += rpc(
                     next(),
                     [](int s) {
                       yields(1);
                       return s;
                     },
                     steps)
                     .get();
      counted += 100 * std::uncaught_exceptions();
      try {
        yield();
        throw numbered(steps);
      } catch (const numbered& e) {
        yield();
        counted += 1000 * (e.number == steps);
      }
    }
  };
  try {
    waits a{seen, n % 4};
    waits b{seen, n % 3};
    throw numbered(n);
  } catch (const numbered& e) {
    return e.number == n && std::uncaught_exceptions() == 0 ? seen : -1;
  }
}

void destructors_suspend_during_unwinding() {
  std::vector<future<int>> all;
  for (int i = 0; i < 40; ++i) all.push_back(rpc(rank_me(), unwinding_suspends, i));
  for (int i = 0; i < 40; ++i) {
    CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), i % 4 + i % 3 + 200 + 2000);
  }
}

void activations_in_catch_blocks() {
  std::vector<future<int>> all;
  for (int i = 0; i < 30; ++i) {
    all.push_back(rpc(
        rank_me(),
        [](int n) {
          try {
            throw numbered(n);
          } catch (const numbered& e) {
            int inner = activate(
                [](int m) {
                  if (std::current_exception() != nullptr) return -1000;
                  migrate_to(next());
                  try {
                    throw m;
                  } catch (int x) {
                    yields(x % 3);
                    return x;
                  }
                },
                n);
            try {
              throw;
            } catch (const numbered& again) {
              return again.number == e.number ? inner : -2000;
            }
          }
        },
        i));
  }
  for (int i = 0; i < 30; ++i) CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), i);
}

long uses_its_stack(int depth, int seed) {
  std::array<int, 200> local;
  for (std::size_t i = 0; i < local.size(); ++i) local[i] = seed + static_cast<int>(i);
  asm volatile("" : : "r"(&local) : "memory");
  yield();
  long below = depth > 0 ? uses_its_stack(depth - 1, seed + 1) : 0;
  yield();
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (local[i] != seed + static_cast<int>(i)) return -1'000'000'000;
  }
  return below + local[7];
}

void more_fibers_than_stacks() {
  // Beyond some number of fibers stacks are shared and their bytes are kept elsewhere.
  std::vector<future<long>> all;
  for (int i = 0; i < 1500; ++i) all.push_back(rpc(rank_me(), uses_its_stack, 6, i));
  for (int i = 0; i < 1500; ++i) {
    long expected = 0;
    for (int d = 0; d <= 6; ++d) expected += i + d + 7;
    CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), expected);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a rounding mode belongs to its fiber", rounding_belongs_to_the_fiber);
    check::claim("a rounding mode travels", rounding_travels);
    check::claim("errno and thread-locals are the rank's", errno_and_thread_locals_are_the_ranks);
    check::claim("catch blocks of fibers interleave", catch_blocks_interleave);
    check::claim("destructors suspend during unwinding", destructors_suspend_during_unwinding);
    check::claim("activations in catch blocks start with no exception",
                 activations_in_catch_blocks);
    check::claim("more fibers than stacks", more_fibers_than_stacks);
    return check::verdict();
  });
}
