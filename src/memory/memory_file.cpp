// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"

namespace sojourn::detail {

int make_memory_file(const char* name, std::uint64_t bytes) {
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
  int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) {
    throw error(format("shared memory cannot be made (memfd_create): %s%s", std::strerror(errno),
                       doctor_hint));
  }
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    int reason = errno;
    close(fd);
    throw error(format("shared memory of %llu MiB of addresses cannot be made: %s%s",
                       static_cast<unsigned long long>(bytes >> 20), std::strerror(reason),
                       doctor_hint));
  }
  return fd;
}

}  // namespace sojourn::detail
