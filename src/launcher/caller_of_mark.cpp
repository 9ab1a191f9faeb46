// SPDX-License-Identifier: Apache-2.0
#include "launcher/caller_of_mark.hpp"

#include <sys/uio.h>

#include <cstddef>

#include "sojourn/detail/mark.hpp"

namespace sojourn::detail {
namespace {

bool read_word(pid_t pid, std::uint64_t address, std::uint64_t& word) {
  iovec here{&word, sizeof word};
  iovec there{reinterpret_cast<void*>(address), sizeof word};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof word);
}

}  // namespace

std::uint64_t caller_of_mark(pid_t pid, std::uint64_t mark) {
  // The layout is that of fiber/switch_*.S. For an activation, the word after the one at the mark's
  // sp points to a frame right there: the frame pointer and the return address. Otherwise saved
  // registers lie in between, on aarch64 after those two.
#if defined(__x86_64__)
  constexpr std::uint64_t caller_at = 56;
#else
  constexpr std::uint64_t caller_at = 24;
#endif
  constexpr std::uint64_t near = 24;
  std::uint64_t sp = 0;
  std::uint64_t frame = 0;
  std::uint64_t caller = 0;
  if (!read_word(pid, mark + offsetof(sojourn::detail::mark, sp), sp) ||
      !read_word(pid, sp + 8, frame)) {
    return 0;
  }
  if (!read_word(pid, frame - sp <= near ? frame + 8 : sp + caller_at, caller)) return 0;
  return caller;
}

}  // namespace sojourn::detail
