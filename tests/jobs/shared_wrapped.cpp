// SPDX-License-Identifier: Apache-2.0
// A program that gives shared memory to the C library's own functions, in whose place the linker
// has put Sojourn's (--wrap).
#include <sojourn/shared_io.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <sojourn/sojourn.hpp>
#include <string>

#include "check.hpp"

extern "C" {
ssize_t __wrap_read(int fd, void* to, size_t bytes) { return sojourn_shared_read(fd, to, bytes); }
ssize_t __wrap_write(int fd, const void* from, size_t bytes) {
  return sojourn_shared_write(fd, from, bytes);
}
size_t __wrap_fread(void* to, size_t each, size_t count, FILE* stream) {
  return sojourn_shared_fread(to, each, count, stream);
}
size_t __wrap_fwrite(const void* from, size_t each, size_t count, FILE* stream) {
  return sojourn_shared_fwrite(from, each, count, stream);
}
}

namespace {

using namespace sojourn;

constexpr std::size_t bytes = 1 << 16;

void the_librarys_functions_take_shared_memory() {
  std::uintptr_t at = 0;
  if (rank_me() == 0) at = reinterpret_cast<std::uintptr_t>(shared::alloc<char>(bytes));
  auto* all = reinterpret_cast<char*>(broadcast(at, 0));
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (r == rank_me()) {
      for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(i % 100 + r);
    }
    shared::barrier();
    if ((r + 1) % rank_count() == rank_me()) {
      std::FILE* file = std::tmpfile();
      CHECK_EQUAL(write(fileno(file), all, bytes), static_cast<ssize_t>(bytes));
      CHECK_EQUAL(std::fwrite(all, 1, bytes, file), bytes);
      std::rewind(file);
      CHECK_EQUAL(std::fread(all, 1, bytes, file), bytes);
      lseek(fileno(file), 0, SEEK_SET);
      CHECK_EQUAL(read(fileno(file), all, bytes), static_cast<ssize_t>(bytes));
      for (std::size_t i = 0; i < bytes; ++i) CHECK(all[i] == static_cast<char>(i % 100 + r));
      std::fclose(file);
    }
    shared::barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("the library's functions take shared memory",
                 the_librarys_functions_take_shared_memory);
    return check::verdict();
  });
}
