// SPDX-License-Identifier: Apache-2.0
// docs/migration.md: a type whose bytes hold an address.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <string>

using namespace sojourn;

#ifdef SOJOURN_EXPECT_ERROR
std::size_t length(std::string text) { return text.size(); }
#else
std::size_t length(inline_string<40> text) { return text.size(); }
#endif

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
#ifdef SOJOURN_EXPECT_ERROR
    std::printf("%zu\n", activate(length, std::string("forty-two")));
#else
    std::printf("%zu\n", activate(length, inline_string<40>("forty-two")));
#endif
  });
}
