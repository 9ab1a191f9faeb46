// SPDX-License-Identifier: Apache-2.0
// A function breaks the promise of its view: it waits while its arguments lie in the message.
#include <vector>

#include "check.hpp"

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    std::vector<int> numbers(10, 1);
    rpc((rank_me() + 1) % rank_count(),
        [](view<int> v) {
          yield();
          return v.size();
        },
        view(numbers))
        .get();
  });
}
