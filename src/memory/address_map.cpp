// SPDX-License-Identifier: Apache-2.0
#include "memory/address_map.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"
#include "memory/memory_file.hpp"
#include "sojourn/detail/running.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace sojourn::detail {

address_map addresses;

namespace {

unsigned log2_floor(std::uint64_t x) { return static_cast<unsigned>(std::bit_width(x)) - 1; }

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise,
                                      std::uint64_t least, std::uint64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return otherwise;
  char* end;
  errno = 0;
  std::uint64_t value = std::strtoull(text, &end, 10);
  if (errno != 0 || *end != 0 || *text == '-' || value < least || value > most) {
    throw error(format("%s=%s is not a whole number from %llu to %llu", name, text,
                       static_cast<unsigned long long>(least),
                       static_cast<unsigned long long>(most)));
  }
  return value;
}

// The free addresses of the private part, which begin after the worker's stack and a gap.
std::uint64_t private_next;
std::uint64_t private_end;

/// Addresses for `bytes` in the private part, or 0 when it is full (small regions).
std::uint64_t take_private(std::size_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  if (bytes > private_end - private_next) return 0;
  std::uint64_t at = private_next;
  private_next += bytes;
  return at;
}

constexpr std::uint64_t region_gib_max = 10 << 10;
constexpr std::uint64_t unit_min = std::uint64_t{64} << 20;

/// The least bytes of a rank's stacks: room for its main fiber and eight more.
std::uint64_t stacks_min(const address_map& m) { return (m.main_slots() + 8) << m.slot_shift; }

/// Stacks are staggered over as many pages as a second-level TLB has sets.
constexpr std::uint32_t stagger_mask = 127;

bool guards_are_wide(const address_map& m) {
  return m.beyond_guard_page() >=
         address_map::wide_guard_bytes + stagger_mask * std::uint64_t{4096};
}

/// Makes slots as wide as wide guards and staggered stacks ask for, but leaves as many slots as
/// fibers_most need.
void widen_guards(address_map& m) {
  address_map wider = m;
  m.stagger_mask = stagger_mask;
  for (++wider.slot_shift; wider.slot_shift <= m.stacks_shift; ++wider.slot_shift) {
    const std::uint64_t needed =
        wider.main_slots() + address_map::fibers_most + address_map::slots_spare;
    if (guards_are_wide(m) || wider.slots_per_rank() < needed) break;
    m.slot_shift = wider.slot_shift;
  }
  if (!guards_are_wide(m)) m.stagger_mask = 0;
}

[[noreturn]] void refuse_region(const address_map& m, int ranks, std::uint64_t bytes_needed) {
  const std::uint64_t gib = (bytes_needed + (std::uint64_t{1} << 30) - 1) >> 30;
  std::string larger;
  if (gib <= region_gib_max) {
    larger =
        format("set SOJOURN_REGION_GIB to %llu or more, or ", static_cast<unsigned long long>(gib));
  }
  throw error(
      format("a region of %llu MiB is too small for %d ranks with stacks of %llu KiB (main: "
             "%llu KiB) and eight fibers each: %suse fewer ranks, or smaller stacks "
             "(--stack-fiber, --stack-main)",
             static_cast<unsigned long long>(m.bytes >> 20), ranks,
             static_cast<unsigned long long>(m.stack_bytes >> 10),
             static_cast<unsigned long long>(m.main_stack_bytes >> 10), larger.c_str()));
}

}  // namespace

address_map address_map::divide(std::uint64_t base, std::uint64_t bytes, int ranks,
                                std::size_t stack_bytes, std::size_t main_stack_bytes) {
  address_map m;
  m.base = base;
  m.bytes = bytes;
  m.unit = std::bit_floor(bytes / 8);
  m.stacks = base + m.unit;
  m.heap = base + 2 * m.unit;
  m.arenas = base + 6 * m.unit;
  m.shared = m.arenas_end();
  m.slot_shift = log2_floor(stack_bytes);
  m.stack_bytes = stack_bytes;
  m.main_stack_bytes = main_stack_bytes;
  std::uint64_t shares = std::bit_ceil(static_cast<std::uint64_t>(ranks));
  m.stacks_shift = log2_floor(m.unit / shares);
  m.heap_shift = log2_floor(4 * m.unit / shares);
  m.arenas_shift = m.stacks_shift;
  if (m.unit < unit_min || (std::uint64_t{1} << m.stacks_shift) < stacks_min(m)) {
    refuse_region(m, ranks, 8 * std::max(unit_min, std::bit_ceil(stacks_min(m)) * shares));
  }
  widen_guards(m);
  return m;
}

bool under_valgrind() {
  const char* preloaded = std::getenv("LD_PRELOAD");
  return preloaded != nullptr && std::strstr(preloaded, "/vgpreload_") != nullptr;
}

address_map map_from_environment(int ranks, bool shrinks) {
  std::uint64_t bytes = shrinks ? bytes_under_valgrind(ranks) : address_map::default_bytes;
  std::uint64_t gib = number_from_environment("SOJOURN_REGION_GIB", bytes >> 30, 1, region_gib_max);
  std::uint64_t kib =
      number_from_environment("SOJOURN_STACK_KIB", 256, stack_kib_min, stack_kib_max);
  if (!std::has_single_bit(kib)) {
    throw error(format("SOJOURN_STACK_KIB=%llu is not a power of two",
                       static_cast<unsigned long long>(kib)));
  }
  std::uint64_t main_kib =
      number_from_environment("SOJOURN_MAIN_STACK_KIB", address_map::default_main_stack_bytes >> 10,
                              stack_kib_min, stack_kib_max);
  if (main_kib % stack_kib_min != 0) {
    throw error(format("SOJOURN_MAIN_STACK_KIB=%llu is not a multiple of %llu",
                       static_cast<unsigned long long>(main_kib),
                       static_cast<unsigned long long>(stack_kib_min)));
  }
  return address_map::divide(address_map::default_base, gib << 30, ranks, kib << 10,
                             main_kib << 10);
}

int reserve_region(const address_map& map) {
  void* wanted = reinterpret_cast<void*>(map.base);
  void* got = mmap(wanted, map.bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return 0;
  if (got == MAP_FAILED) return errno;
  // Kernels before 4.17 take the address as a hint only.
  munmap(got, map.bytes);
  return EEXIST;
}

obstacle why_not_reserved(const address_map& map, int reason) {
  rlimit limit;
  double tib = static_cast<double>(map.bytes) / static_cast<double>(1ull << 40);
  if (reason == EEXIST) {
    return {format("the addresses from 0x%llx to 0x%llx are taken in this process, and Sojourn "
                   "needs them",
                   static_cast<unsigned long long>(map.base),
                   static_cast<unsigned long long>(map.base + map.bytes)),
            "another library maps memory there"};
  }
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return {format("the address space of this process is limited to %llu MiB, and Sojourn "
                   "reserves %.3g TiB of addresses (no memory)",
                   static_cast<unsigned long long>(limit.rlim_cur >> 20), tib),
            "run `ulimit -v unlimited`, or set SOJOURN_REGION_GIB to a smaller region"};
  }
  return {format("%.3g TiB of addresses cannot be reserved (%s)", tib, std::strerror(reason)),
          "with strict overcommit (vm.overcommit_memory=2) or in a small virtual machine set "
          "SOJOURN_REGION_GIB to a smaller region"};
}

void map_region(const address_map& map, int rank, int heap_fd, ranks_of_host near) {
  if (int reason = reserve_region(map); reason != 0) {
    obstacle o = why_not_reserved(map, reason);
    throw error(o.what + ": " + o.remedy + doctor_hint);
  }
  // The memory is a memfd in both cases, because the pages of one are charged only when they are
  // touched, even under strict overcommit.
  std::uint64_t partition = std::uint64_t{1} << map.heap_shift;
  std::uint64_t first = map.heap + static_cast<std::uint64_t>(rank) * partition;
  // The partition of a rank of another host is not mapped: an access to it faults.
  std::uint64_t skipped = heap_fd >= 0 ? static_cast<std::uint64_t>(near.first) * partition : 0;
  std::uint64_t where = heap_fd >= 0 ? map.heap + skipped : first;
  std::uint64_t size =
      heap_fd >= 0 ? static_cast<std::uint64_t>(near.count) * partition : partition;
  int fd = heap_fd >= 0 ? heap_fd : make_memory_file("sojourn-heap", size);
  if (mmap(reinterpret_cast<void*>(where), size, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, static_cast<off_t>(skipped)) == MAP_FAILED) {
    throw error(format("the heap cannot be mapped: %s%s", std::strerror(errno), doctor_hint));
  }
  close(fd);
  // Left out of core dumps: a dump would contain all of the mapping, and writing it would fill
  // memory with zeros. global_heap.cpp includes the used part of this rank's partition; the cores
  // of other ranks have theirs.
  madvise(reinterpret_cast<void*>(where), size, MADV_DONTDUMP);
  addresses = map;
  private_end = map.program_heap();
  private_next = map.worker_stack() + address_map::worker_stack_bytes + (1u << 20);
  job.heap = map.heap;
  job.heap_shift = map.heap_shift;
  job.my_heap = first;
  job.my_heap_bytes = partition;
  job.quick_heap_bytes = job.checked ? 0 : partition;
  job.heap_shared = heap_fd >= 0;
  job.reach = where;
  job.reach_bytes = size;
}

namespace {

/// Private memory at `address`, or anywhere when that is 0.
void* map_private(std::uint64_t address, std::size_t bytes) {
  auto* wanted = reinterpret_cast<void*>(address);
  void* got = mmap(
      wanted, bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (wanted != nullptr ? MAP_FIXED : 0), -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  return got;
}

}  // namespace

void* runtime_memory(std::size_t bytes) { return map_private(take_private(bytes), bytes); }

void* runtime_memory_at_end(std::size_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  bool has_room = bytes <= private_end - private_next;
  return map_private(has_room ? private_end -= bytes : 0, bytes);
}

void* move_mapping_to_runtime_memory(void* mapping, std::size_t bytes) {
  std::uint64_t wanted = take_private(bytes);
  if (wanted == 0) return mapping;
  void* got =
      mremap(mapping, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(wanted));
  if (got == MAP_FAILED) throw std::bad_alloc();
  return got;
}

}  // namespace sojourn::detail
