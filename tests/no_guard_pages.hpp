// SPDX-License-Identifier: Apache-2.0
// Makes this process one without guard pages, as it is on a kernel before 6.13 and past
// vm.max_map_count: the system calls that would make them fail.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

namespace without_guards {

/// Whether the system has filters of system calls at all: emulators have none.
inline bool can_be() { return prctl(PR_GET_SECCOMP) >= 0; }

/// From now on madvise(MADV_GUARD_INSTALL) is unknown and, if `also_by_mprotect`, nothing can be
/// made inaccessible. False when the system has no such filters.
inline bool from_now_on(bool also_by_mprotect) {
  constexpr auto number = static_cast<unsigned>(offsetof(seccomp_data, nr));
  auto argument = [](unsigned i) {
    return static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * i);
  };
  auto load = [](unsigned offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
  };
  auto skip_unless = [](unsigned value, unsigned char skip) -> sock_filter {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
  };
  auto fail = [](unsigned reason) -> sock_filter {
    return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | reason);
  };
  constexpr unsigned guard_install = 102;
  // The second number says how many instructions to skip when the values differ.
  sock_filter filter[] = {
      load(number),
      skip_unless(SYS_madvise, 3),
      load(argument(2)),
      skip_unless(guard_install, 5),
      fail(EINVAL),
      skip_unless(also_by_mprotect ? static_cast<unsigned>(SYS_mprotect) : ~0u, 3),
      load(argument(2)),
      skip_unless(PROT_NONE, 1),
      fail(ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace without_guards
