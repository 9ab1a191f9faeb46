// SPDX-License-Identifier: Apache-2.0
// A program of the runtime that ends its last rank in the way its argument says.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "sojourn/sojourn.hpp"

namespace ends {

[[gnu::noinline]] void by_segmentation_fault() {
  // An address without a page, which the compiler does not see through.
  volatile std::uintptr_t address = 8;
  *reinterpret_cast<volatile int*>(address) = 1;
}

[[gnu::noinline]] void by_abort() { std::abort(); }

[[gnu::noinline]] int by_stack_overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (depth < 0) return 0;  // Not before memory ends; the compiler cannot know.
  // Used after the call, so that the frame stays until then.
  return by_stack_overflow(depth + 1) + frame[0];
}

[[gnu::noinline]] void by_uncaught_exception() { throw std::runtime_error("thrown on purpose"); }

}  // namespace ends

struct counter {
  int value = 0;
  int add(int v) { return value += v; }
};

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "well";
  return sojourn::run(argc, argv, [&] {
    auto is = [&](const char* word) { return std::strcmp(how, word) == 0; };
    std::printf("rank %d of %d is %d\n", sojourn::rank_me(), sojourn::rank_count(), getpid());
    auto here = sojourn::make<counter>(sojourn::rank_me());
    for (int i = 0; i < 7; ++i) here.call<&counter::add>(1);
    if (is("remote") && sojourn::rank_count() > 1) {
      auto there = sojourn::make<counter>((sojourn::rank_me() + 1) % sojourn::rank_count());
      there.call<&counter::add>(sojourn::via::rpc, 1);
    }
    sojourn::barrier();
    if (sojourn::rank_me() == sojourn::rank_count() - 1) {
      if (is("segv")) ends::by_segmentation_fault();
      if (is("abort")) ends::by_abort();
      if (is("overflow")) return ends::by_stack_overflow(0);
      if (is("throw")) ends::by_uncaught_exception();
      if (is("exit")) std::exit(0);
      if (is("status")) return 3;
      if (is("wait")) pause();
    }
    sojourn::barrier();
    int sum = sojourn::reduce(1, [](int a, int b) { return a + b; });
    return sum == sojourn::rank_count() ? 0 : 1;
  });
}
