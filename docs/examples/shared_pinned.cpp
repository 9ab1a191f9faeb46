// SPDX-License-Identifier: Apache-2.0
// Shared memory that is pinned for the system and for a thread: docs/shared_memory.md.
#include <sojourn/sojourn.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using namespace sojourn;

struct table {
  int values[20000];
};

void written(int fd, const table* of) {
  if (write(fd, of, sizeof *of) != static_cast<ssize_t>(sizeof *of)) std::perror("write");
}

void keep(const char* name, const table* of) {
  const shared::pinned here(of, sizeof *of);  // from here on all of it can be loaded by anybody
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::thread writer([&] { written(fd, of); });  // not a fiber: it could not wait for a page
  writer.join();
  close(fd);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    shared::pointer<table> all;
    if (rank_me() == 0) all = shared::alloc<table>();
    all = broadcast(all, 0);
    for (int k = rank_me(); k < 20000; k += rank_count()) all->values[k] = k;
    shared::barrier();
    if (rank_me() == 0) {
      char name[] = "/tmp/shared_pinned.XXXXXX";
      close(mkstemp(name));
      keep(name, all);
      std::FILE* file = std::fopen(name, "rb");
      long sum = 0;
      for (int value; std::fread(&value, sizeof value, 1, file) == 1;) sum += value;
      std::fclose(file);
      std::remove(name);
      std::printf("%ld\n", sum);
    }
    barrier();
  });
}
