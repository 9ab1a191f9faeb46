// SPDX-License-Identifier: Apache-2.0
// A crash in a thread that the program has started, while a fiber of the rank serves a call.
// clang-format off
//! status 139
//! says   an access through a null pointer, to the byte at offset 0
//! says     #0  0x[0-9a-f]*  faults::follows() at .*in_thread.cpp:LINE
//! says     #1  0x[0-9a-f]*  faults::body() at .*in_thread.cpp:[0-9]*
//! says   in a thread of the program, beside the one that runs the rank
//! never says   a call by.*
// clang-format on
#include <sojourn/sojourn.hpp>

#include <thread>

namespace faults {
long* volatile nowhere;
[[gnu::noinline]] long follows() {
  return *nowhere;  // here
}
[[gnu::noinline]] void body() { *nowhere = follows() + 1; }
[[gnu::noinline]] int serve() {
  std::thread one(body);
  std::thread two(body);
  one.join();
  two.join();
  return 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::serve).get();
    sojourn::barrier();
  });
}
