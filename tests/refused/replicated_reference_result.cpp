// SPDX-License-Identifier: Apache-2.0
// A read returns a value, because its version may be freed when it has ended.
#include <sojourn/sojourn.hpp>

#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto text = make_replicated<std::string>("text");
#ifdef SOJOURN_EXPECT_ERROR
    const std::string copy =
        text.read([](const std::string& s) -> const std::string& { return s; });
#else
    const std::string copy = text.read([](const std::string& s) { return s; });
#endif
    return copy == "text" ? 0 : 1;
  });
}
