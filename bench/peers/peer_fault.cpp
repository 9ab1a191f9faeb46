// SPDX-License-Identifier: Apache-2.0
//
// What a page fault costs whose handler does nothing but open the page for loads: the least that a
// fault of shared memory takes. Without any runtime; on the core that --cpus names first.
//
//   fault     a load of a page that is closed, `iterations` pages in order
//   is_uffd   1 where pages are protected by userfaultfd, 0 where by mprotect: as Sojourn chooses
//
// As there, the pages' memory is in a memfd that is mapped twice, and there already.

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/command_channel.hpp"

#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP (static_cast<__u64>(1) << 1)
#endif

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages = 4096;
constexpr std::size_t bytes = pages * page_bytes;

char* view = nullptr;
int uffd = -1;  // -1: by mprotect

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

bool by_userfaultfd() {
#ifdef UFFD_USER_MODE_ONLY
  uffd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  if (uffd < 0) return false;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |
                 UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  uffdio_register all{};
  all.range = {reinterpret_cast<__u64>(view), bytes};
  all.mode = UFFDIO_REGISTER_MODE_WP | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(uffd, UFFDIO_API, &api) == 0 && ioctl(uffd, UFFDIO_REGISTER, &all) == 0) return true;
  close(uffd);
#endif
  uffd = -1;
  return false;
}

void open_page(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page_bytes - 1);
  if (at - reinterpret_cast<std::uintptr_t>(view) >= bytes) _exit(3);
  if (uffd < 0) {
    if (mprotect(reinterpret_cast<void*>(at), page_bytes, PROT_READ) != 0) _exit(4);
    return;
  }
  uffdio_continue c{};
  c.range = {at, page_bytes};
  c.mode = UFFDIO_CONTINUE_MODE_DONTWAKE | UFFDIO_CONTINUE_MODE_WP;
  if (ioctl(uffd, UFFDIO_CONTINUE, &c) != 0) _exit(5);
}

void close_all() {
  const int failed =
      uffd < 0 ? mprotect(view, bytes, PROT_NONE) : madvise(view, bytes, MADV_DONTNEED);
  if (failed != 0) fail("peer_fault: cannot close the pages");
}

void map_pages() {
  const int file = memfd_create("peer_fault", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) fail("peer_fault: memfd");
  void* open = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  void* closed = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
  if (open == MAP_FAILED || closed == MAP_FAILED) fail("peer_fault: mmap");
  view = static_cast<char*>(closed);
  if (by_userfaultfd() && mprotect(view, bytes, PROT_READ | PROT_WRITE) != 0)
    fail("peer_fault: mprotect");
  static char stack[1 << 16];
  const stack_t alternate{stack, 0, sizeof stack};
  struct sigaction action{};
  action.sa_sigaction = open_page;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  if (sigaltstack(&alternate, nullptr) != 0 || sigaction(SIGSEGV, &action, nullptr) != 0 ||
      sigaction(SIGBUS, &action, nullptr) != 0)
    fail("peer_fault: signals");
}

std::vector<double> faults(const bench::batch_plan& plan) {
  const std::size_t count = std::clamp<std::size_t>(plan.iterations, 1, pages);
  std::vector<double> found;
  for (std::uint64_t round = 0; round <= plan.repeats; ++round) {
    close_all();
    const std::uint64_t start_ns = bench::clock_ns();
    for (std::size_t p = 0; p < count; ++p) {
      (void)*static_cast<volatile char*>(view + p * page_bytes);
    }
    const std::uint64_t ns = bench::clock_ns() - start_ns;
    if (round != 0) found.push_back(static_cast<double>(ns) / static_cast<double>(count));
  }
  return found;
}

std::vector<double> measure(const bench::command& next) {
  if (next.operation == "fault") return faults(next.plan);
  if (next.operation == "is_uffd") return {uffd < 0 ? 0.0 : 1.0};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "fault");
  if (!bench::pin_to_cpu(options.cpus.front())) fail("peer_fault: cannot pin to the core");
  map_pages();
  if (options.commands.empty()) {
    const auto found = measure({options.operation, options.plan});
    if (found.empty()) {
      std::fprintf(stderr, "peer_fault: no operation %s\n", options.operation.c_str());
      return 2;
    }
    bench::print_samples("fault", options, found);
    return 0;
  }
  bench::command_channel channel(options, 0);
  while (const auto next = channel.next()) {
    const auto found = measure(*next);
    if (found.empty())
      channel.refuse("peer_fault does not know this operation");
    else
      channel.answer(found);
  }
  return 0;
}
