// SPDX-License-Identifier: Apache-2.0
// Addresses and memory, as a rank takes them at its start.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"
#include "base/kernel_files.hpp"
#include "doctor/checks.hpp"
#include "doctor/trial.hpp"
#include "fiber/ticket_table.hpp"
#include "job/segment.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace sojourn::detail {
namespace {

constexpr int ranks_tried = 2;
constexpr const char* no_region = "not tried: the address range is not available";

bool can_reserve(const address_map& map) {
  if (reserve_region(map) != 0) return false;
  munmap(reinterpret_cast<void*>(map.base), map.bytes);
  return true;
}

/// A sentence of the runtime, without the hint to run `sojourn doctor`.
std::string reason_of(const trial& t) { return t.reason.substr(0, t.reason.find(doctor_hint)); }

/// The finding of a trial that must work. `remedy`: what to do when it was tried and does not work.
finding by_trial(const char* check, attempt_result (*attempt)(), const char* remedy) {
  trial t = try_in_child(attempt);
  if (t.works()) return {check, severity::ok, t.note, ""};
  if (!t.started) return not_tried(check, t);
  std::string reason = reason_of(t);
  return {check, severity::failure, reason, reason == no_region ? "see 'address range'" : remedy};
}

attempt_result open_memory(std::uint64_t address, std::size_t bytes) {
  if (mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) != 0) {
    return failed("mprotect");
  }
  return {};
}

/// Takes what a rank takes at its start: the region, its large tables, two stacks.
attempt_result take_rank_memory() {
  address_map map = map_from_environment(ranks_tried);
  if (!can_reserve(map)) return {no_region, ""};
  map_region(map, 0, -1);
  try {
    runtime_memory(map.slot_count() * sizeof(stack_slot));
    runtime_memory(sizeof(ticket) << ticket_array::index_bits);
  } catch (const std::bad_alloc&) {
    return {"the memory for a rank's tables is refused", ""};
  }
  attempt_result result = open_memory(map.worker_stack(), address_map::worker_stack_bytes);
  if (result.reason.empty()) result = open_memory(map.stacks, map.main_stack_bytes);
  std::string kib = read_field("/proc/self/status", "VmData");
  result.note = kib.empty() ? "available"
                            : format("%ld MiB available, charged only when touched",
                                     std::atol(kib.c_str()) >> 10);
  return result;
}

/// The largest region that a rank can start with under the present limits, in GiB; 0 for none.
int largest_region_gib() {
  for (int gib = 4096; gib >= 1; gib /= 2) {
    trial t = try_in_child([&] {
      setenv("SOJOURN_REGION_GIB", std::to_string(gib).c_str(), 1);
      return take_rank_memory();
    });
    if (t.works()) return gib;
    if (!t.started) return 0;
  }
  return 0;
}

std::string region_remedy() {
  int gib = largest_region_gib();
  if (gib == 0) return "run `ulimit -v unlimited`; even the smallest region does not fit";
  return format("run `ulimit -v unlimited`, or set SOJOURN_REGION_GIB=%d, which fits", gib);
}

std::string span(const address_map& map) {
  return format("0x%llx to 0x%llx (%llu GiB)", static_cast<unsigned long long>(map.base),
                static_cast<unsigned long long>(map.base + map.bytes),
                static_cast<unsigned long long>(map.bytes >> 30));
}

void* store_errno_address(void* result) {
  *static_cast<int**>(result) = &errno;
  return nullptr;
}

attempt_result run_worker_thread() {
  address_map map = map_from_environment(ranks_tried);
  if (reserve_region(map) != 0) return {no_region, ""};
  void* stack = reinterpret_cast<void*>(map.worker_stack());
  constexpr std::size_t bytes = address_map::worker_stack_bytes;
  if (mprotect(stack, bytes, PROT_READ | PROT_WRITE) != 0) return failed("mprotect");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, bytes);
  pthread_t thread;
  int* where = nullptr;
  errno = pthread_create(&thread, &attributes, store_errno_address, &where);
  if (errno != 0) return failed("pthread_create");
  pthread_join(thread, nullptr);
  auto address = reinterpret_cast<unsigned long long>(where);
  if (address - map.worker_stack() >= bytes) {
    return {format("its thread-local variables lie at 0x%llx, not on its stack", address), ""};
  }
  return {"",
          format("runs at its fixed address, with its thread-local variables (0x%llx)", address)};
}

attempt_result share_memory() {
  job_fds fds = create_job({.ranks = ranks_tried});
  address_map map = map_from_environment(ranks_tried);
  if (!can_reserve(map)) return {no_region, ""};
  map_region(map, 0, fds.heap, {0, ranks_tried});
  auto* word = reinterpret_cast<volatile std::uint64_t*>(
      addresses.heap + (std::uint64_t{1} << addresses.heap_shift));
  pid_t child = fork_helper([&] { *word = job_segment_magic; });
  if (child < 0) return failed("fork");
  waitpid(child, nullptr, 0);
  if (*word != job_segment_magic) return {"what one process writes, another does not read", ""};
  if (madvise(const_cast<std::uint64_t*>(word), 4096, MADV_REMOVE) != 0) {
    return {"", "shared by two processes; what the heap frees is not given back to the system"};
  }
  return {"", "shared by two processes, without a name"};
}

}  // namespace

finding check_address_range() {
  finding f{"address range", severity::ok, "", ""};
  address_map map;
  try {
    map = map_from_environment(ranks_tried);
  } catch (const std::exception& e) {
    return {f.check, severity::failure, e.what(), "correct or unset the variable"};
  }
  // Tried in this process, for a moment only: it has the same mappings as ranks have.
  int reason = reserve_region(map);
  if (reason == 0) {
    munmap(reinterpret_cast<void*>(map.base), map.bytes);
    f.found = span(map) + " is free";
    return f;
  }
  obstacle o = why_not_reserved(map, reason);
  f.level = severity::failure;
  f.found = o.what;
  f.remedy = reason == EEXIST ? o.remedy : region_remedy();
  return f;
}

finding check_worker_thread() {
  return by_trial("worker thread", run_worker_thread,
                  "raise the limits on memory and processes (below)");
}

finding check_rank_memory() {
  return by_trial("memory of a rank", take_rank_memory,
                  "raise the limits on address space, data and file size (below), or allow "
                  "overcommit (vm.overcommit_memory=0)");
}

finding check_shared_memory() {
  return by_trial("shared memory", share_memory,
                  "raise the limit on file size (below); in a container allow memfd_create");
}

finding check_overcommit() {
  finding f{"overcommit", severity::ok, "", ""};
  std::string mode = read_line("/proc/sys/vm/overcommit_memory");
  if (mode == "0") {
    f.found = "by estimate (vm.overcommit_memory=0)";
  } else if (mode == "1") {
    f.found = "always (vm.overcommit_memory=1)";
  } else if (mode == "2") {
    long limit = std::atol(read_field("/proc/meminfo", "CommitLimit").c_str());
    long used = std::atol(read_field("/proc/meminfo", "Committed_AS").c_str());
    f.level = severity::warning;
    f.found = format(
        "strict (vm.overcommit_memory=2): %ld MiB are left, and each rank takes what 'memory of a "
        "rank' says, touched or not",
        std::max(limit - used, 0L) / 1024);
    f.remedy = "sysctl vm.overcommit_memory=0, or start few ranks";
  } else {
    f.found = "unknown: /proc/sys is not readable here";
  }
  return f;
}

finding check_mappings() {
  finding f{"mappings", severity::ok, "", ""};
  std::optional<long> most = parse_number(read_line("/proc/sys/vm/max_map_count"));
  trial t = try_in_child([]() -> attempt_result {
    void* page = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return failed("mmap");
    if (madvise(page, 4096, MADV_GUARD_INSTALL) == 0) return {};
    if (mprotect(page, 4096, PROT_NONE) != 0) return failed("mprotect");
    return {"", "split"};
  });
  if (!t.started) return not_tried(f.check, t);
  if (!t.works()) {
    return {f.check, severity::warning, "guard pages under stacks: " + t.reason,
            "allow madvise and mprotect in the container"};
  }
  try {
    const address_map map = map_from_environment(ranks_tried);
    f.found = format("%llu KiB under each stack are guarded, ",
                     static_cast<unsigned long long>(map.guard_width() >> 10));
  } catch (const error&) {
    // The wrong setting is reported by a finding of its own.
    f.found = "a guard under each stack, ";
  }
  if (t.note.empty()) {
    f.found += "which takes none";
  } else {
    f.found += "which takes two (before Linux 6.13)";
    if (most) f.found += format(", so %ld stacks a rank are", *most / 2);
  }
  if (most) f.found += format("; the limit is %ld", *most);
  // A rank without fibers has about 40 mappings.
  if (most && *most < 1000) {
    f.level = severity::warning;
    f.remedy = "sysctl vm.max_map_count=65530";
  }
  return f;
}

finding check_memory() {
  finding f{"memory", severity::ok, "", ""};
  constexpr long little_mib = 256;
  std::string available = read_field("/proc/meminfo", "MemAvailable");
  std::optional<long> free_mib;
  if (!available.empty()) {
    free_mib = std::atol(available.c_str()) / 1024;
    f.found = format("%ld MiB available", *free_mib);
  } else {
    f.found = "unknown: /proc/meminfo is not readable here";
  }
  std::optional<long> limit = control_group_limit("memory.max", "memory", "memory.limit_in_bytes");
  // The older hierarchy of control groups writes "no limit" as a number near the largest.
  if (limit && *limit < (1L << 60)) {
    f.found += format("; the control group allows %ld MiB", *limit >> 20);
    free_mib = std::min(free_mib.value_or(*limit >> 20), *limit >> 20);
  }
  if (free_mib && *free_mib < little_mib) {
    f.level = severity::warning;
    f.remedy = "end other programs, or give the machine or container more";
  }
  return f;
}

}  // namespace sojourn::detail
