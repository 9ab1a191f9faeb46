// SPDX-License-Identifier: Apache-2.0
// A text that is too long for the report says that it was cut.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_exception_long) was killed by SIGABRT (aborted)
//! says   an exception of type std::runtime_error is not caught: a long story: ££*\.\.\.
// clang-format on
#include <sojourn/sojourn.hpp>

#include <stdexcept>
#include <string>

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == sojourn::rank_count() - 1) {
      std::string text = "a long story: ";
      for (int i = 0; i < 2000; ++i) text += "£";
      throw std::runtime_error(text);
    }
    sojourn::barrier();
  });
}
