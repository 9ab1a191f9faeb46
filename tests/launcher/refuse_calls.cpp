// SPDX-License-Identifier: Apache-2.0
// Runs a program under a seccomp filter, as containers do.
//   refuse_calls fail|kill CALL... -- PROGRAM ARGUMENTS...
// The named system calls fail with EPERM, or kill whoever makes them.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

struct call {
  const char* name;
  unsigned number;
};

constexpr call calls[] = {
    {"membarrier", SYS_membarrier},
    {"memfd_create", SYS_memfd_create},
    {"process_vm_readv", SYS_process_vm_readv},
    {"signalfd4", SYS_signalfd4},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"ptrace", SYS_ptrace},
    {"prctl", SYS_prctl},
};

int number_of(const char* name) {
  for (const call& c : calls) {
    if (std::strcmp(c.name, name) == 0) return static_cast<int>(c.number);
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  unsigned verdict = std::strcmp(argv[1], "kill") == 0 ? SECCOMP_RET_KILL_PROCESS
                                                       : SECCOMP_RET_ERRNO | unsigned{EPERM};
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  int i = 2;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    int number = number_of(argv[i]);
    if (number < 0) {
      std::fprintf(stderr, "refuse_calls: there is no call %s in its list\n", argv[i]);
      return 2;
    }
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    std::perror("refuse_calls: no filter");
    return 77;
  }
  if (i + 1 >= argc) return 2;
  execv(argv[i + 1], argv + i + 1);
  std::perror("refuse_calls: cannot execute");
  return 2;
}
