// SPDX-License-Identifier: Apache-2.0
#include <sojourn/sojourn.hpp>

#include <cstdio>
using namespace sojourn;

struct counter {
  long count = 0;
  long add(long n) { return count += n; }
};

long add_twice(global_ptr<counter> c) {
  c.call<&counter::add>(via::migrate, 1L);         // remote? then go there, with this frame
  return c.call<&counter::add>(via::migrate, 1L);  // and this is a plain call there
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {  // on every rank
    auto c = make<counter>((rank_me() + 1) % rank_count());
    std::printf("rank %d: %ld\n", rank_me(), activate(add_twice, c));
  });
}
