// SPDX-License-Identifier: Apache-2.0
// A thread of the program hands over what it reads: docs/other_threads.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    std::istringstream in("ten\nthousand\nlines\n");
    long total = 0;
    semaphore all_read(0);
    std::thread reader([&] {
      for (std::string line; std::getline(in, line);) {
        post([&, line] { total += static_cast<long>(line.size()); });
      }
      post([&] { all_read.release(); });
    });
    all_read.acquire();  // other fibers of the rank go on meanwhile
    reader.join();
    total = reduce(total, std::plus());
    if (rank_me() == 0) std::printf("%ld bytes on each rank\n", total / rank_count());
  });
}
