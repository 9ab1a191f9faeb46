// SPDX-License-Identifier: Apache-2.0
// A system call on shared memory.
#include <sojourn/sojourn.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstring>
using namespace sojourn;

constexpr std::size_t bytes = 64 << 10;

// bad
bool load_bad(int fd, char* to) {
  return read(fd, to, bytes) == bytes;  // the system does not wait for pages that are elsewhere
}

// good
bool load_good(int fd, char* to) { return shared::read(fd, to, bytes) == bytes; }

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    shared::pointer<char> all;
    if (rank_me() == rank_count() - 1) {
      all = shared::alloc<char>(bytes);
      std::memset(all, 'x', bytes);  // the pages are on this rank
    }
    all = broadcast(all, rank_count() - 1);
    if (rank_me() != 0) return 0;
    std::FILE* file = std::tmpfile();
    if (ftruncate(fileno(file), bytes) != 0) return 2;
    const bool loaded = bad ? load_bad(fileno(file), all) : load_good(fileno(file), all);
    if (!loaded) std::perror("read");
    std::fclose(file);
    return loaded ? 0 : 1;
  });
}
