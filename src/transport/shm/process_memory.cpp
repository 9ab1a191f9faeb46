// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/process_memory.hpp"

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail::shm {

process_memory::process_memory(wake_line* lines, int rank, int ranks) : lines_(lines) {
  const char* copies = std::getenv("SOJOURN_READ_MEMORY");
  if (copies != nullptr && std::strcmp(copies, "on") != 0 && std::strcmp(copies, "off") != 0) {
    throw error(format("SOJOURN_READ_MEMORY=%s is neither on nor off", copies));
  }
  is_refused_ = copies != nullptr && std::strcmp(copies, "off") == 0;
  peers_ = runtime_array<process_is>(static_cast<std::size_t>(ranks));
  wake_line& mine = lines_[rank];
  if (getrandom(&own_word_, sizeof own_word_, GRND_NONBLOCK) != sizeof own_word_)
    own_word_ = now_ns() * 0x9e3779b97f4a7c15u + static_cast<unsigned>(rank);
  mine.word.store(own_word_);
  mine.word_at.store(reinterpret_cast<std::uint64_t>(&own_word_));
  mine.pid.store(getpid());
  // Where the system restricts access to other processes' memory: permits the launcher and its
  // children, the other ranks, to read and write this rank's. Only copy() does so.
  if (ranks > 1) prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
}

bool process_memory::reaches(int rank) {
  process_is& known = peers_[rank];
  if (known != process_is::unknown) return known == process_is::the_rank;
  const wake_line& its = lines_[rank];
  std::uint64_t word = 0;
  iovec local{&word, sizeof word};
  iovec remote{reinterpret_cast<void*>(its.word_at.load()), sizeof word};
  const ssize_t n = process_vm_readv(its.pid.load(), &local, 1, &remote, 1, 0);
  // No process has that number here, or one that may not be read, or has nothing at this address.
  const bool another = (n < 0 && (errno == ESRCH || errno == EFAULT || errno == EPERM)) ||
                       (n == sizeof word && word != its.word.load());
  // Whatever else is wrong shows when it is read in earnest.
  known = another ? process_is::another : process_is::the_rank;
  return !another;
}

bool process_memory::copy(int rank, std::uint64_t there, void* here, std::size_t bytes,
                          bool write) {
  if (is_refused_ || !reaches(rank)) return false;
  pid_t pid = lines_[rank].pid.load();
  std::size_t done = 0;
  while (done < bytes) {
    iovec local{static_cast<std::byte*>(here) + done, bytes - done};
    iovec remote{reinterpret_cast<void*>(there + done), bytes - done};
    ssize_t n = write ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
                      : process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (n <= 0) {
      // The rank's process is ending, and its memory is gone. A moment later the launcher says that
      // the rank was lost, and why; a message to that rank waits until then.
      if (errno == ESRCH) return false;
      if (done == 0 && (errno == EPERM || errno == ENOSYS)) {
        is_refused_ = true;
        return false;
      }
      throw error(format("%s of %zu bytes %s rank %d at 0x%llx failed: %s",
                         write ? "a put" : "a get", bytes, write ? "to" : "from", rank,
                         static_cast<unsigned long long>(there), std::strerror(errno)));
    }
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace sojourn::detail::shm
