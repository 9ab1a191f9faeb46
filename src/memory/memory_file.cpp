// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"

namespace sojourn::detail {

void lengthen_memory_file(int fd, std::uint64_t bytes) {
  // Beyond this limit ftruncate does not fail: it raises SIGXFSZ, which kills the process.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    throw error(
        format("files of this process are limited to %llu KiB, and Sojourn needs %llu MiB "
               "of addresses (no memory) in one: run `ulimit -f unlimited`, or set "
               "SOJOURN_REGION_GIB to a smaller region%s",
               static_cast<unsigned long long>(limit.rlim_cur >> 10),
               static_cast<unsigned long long>(bytes >> 20), doctor_hint));
  }
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    throw error(format("shared memory of %llu MiB of addresses cannot be made: %s%s",
                       static_cast<unsigned long long>(bytes >> 20), std::strerror(errno),
                       doctor_hint));
  }
}

int make_memory_file(const char* name, std::uint64_t bytes) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    throw error(format("shared memory cannot be made (memfd_create): %s%s", std::strerror(errno),
                       doctor_hint));
  }
  try {
    lengthen_memory_file(fd, bytes);
  } catch (...) {
    close(fd);
    throw;
  }
  return fd;
}

void keep_memory_file_long(int fd) {
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw error(format("shared memory cannot be sealed: %s%s", std::strerror(errno), doctor_hint));
  }
}

}  // namespace sojourn::detail
