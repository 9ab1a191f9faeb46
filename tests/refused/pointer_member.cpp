// SPDX-License-Identifier: Apache-2.0
// A pointer is found in an aggregate that is marshalled.
#include <sojourn/sojourn.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

struct named {
  std::string name;
#ifdef SOJOURN_EXPECT_ERROR
  const named* parent;
#else
  global_ptr<const named> parent;
#endif
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](const named& n) { return n.name.size(); }, named{"x", nullptr}).get();
#else
    rpc(0, [](const named& n) { return n.name.size(); }, named{"x", {}}).get();
#endif
  });
}
