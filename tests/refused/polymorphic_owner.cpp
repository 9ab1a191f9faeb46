// SPDX-License-Identifier: Apache-2.0
// Only what the type of the pointer says would be copied of it.
#include <sojourn/sojourn.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

struct shape {
#ifdef SOJOURN_EXPECT_ERROR
  virtual ~shape() = default;
#endif
  std::string name;
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](std::unique_ptr<shape> s) { return s->name; }, std::make_unique<shape>()).get();
#else
    rpc(0, [](std::unique_ptr<shape> s) { return s->name; }, std::make_unique<shape>()).get();
#endif
  });
}
