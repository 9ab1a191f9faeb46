// SPDX-License-Identifier: Apache-2.0
#include "job/segment.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"
#include "memory/address_map.hpp"
#include "memory/memory_file.hpp"
#include "transport/sleepers.hpp"

namespace sojourn::detail {

job_fds create_job(const job_shape& shape) {
  // Not the smaller map of Valgrind, which may run the ranks and not the launcher, or the other way
  // round: large enough for both.
  address_map map = map_from_environment(shape.ranks, false);
  std::size_t transport_offset = job_segment::header_bytes(shape.ranks);
  std::size_t bytes = transport_offset + transport_bytes(shape.ranks, shape.ranks_here);
  job_fds fds{make_memory_file("sojourn-job", bytes), -1, -1};
  void* memory =
      mmap(nullptr, transport_offset, PROT_READ | PROT_WRITE, MAP_SHARED, fds.segment, 0);
  if (memory == MAP_FAILED) {
    int reason = errno;
    close(fds.segment);
    throw error(format("the job's shared memory cannot be mapped: %s%s", std::strerror(reason),
                       doctor_hint));
  }
  auto* segment = static_cast<job_segment*>(memory);
  segment->magic = job_segment_magic;
  segment->rank_count = static_cast<std::uint32_t>(shape.ranks);
  segment->first_here = static_cast<std::uint32_t>(shape.first_here);
  segment->ranks_here = static_cast<std::uint32_t>(shape.ranks_here);
  segment->share_heap = shape.share_heap ? 1 : 0;
  segment->cores = static_cast<std::uint32_t>(shape.cores);
  segment->bound = shape.bound ? 1 : 0;
  if (getrandom(&segment->secret, sizeof segment->secret, 0) != sizeof segment->secret) {
    segment->secret = static_cast<std::uint64_t>(getpid()) * 0x9e3779b97f4a7c15u;
  }
  segment->secret = canary_of(segment->secret);
  segment->segment_bytes = bytes;
  segment->transport_offset = transport_offset;
  munmap(memory, transport_offset);
  try {
    if (shape.share_heap) fds.heap = make_memory_file("sojourn-heap", map.heap_bytes());
    fds.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fds.bell < 0) {
      throw error(format("an eventfd cannot be made: %s%s", std::strerror(errno), doctor_hint));
    }
  } catch (...) {
    close(fds.segment);
    if (fds.heap >= 0) close(fds.heap);
    throw;
  }
  return fds;
}

watch_area job_segment::watch() {
  auto* start = reinterpret_cast<std::byte*>(this);
  int count = static_cast<int>(rank_count);
  return {start + watch_offset(count), count, sleepers(start + transport_offset)};
}

job_segment* map_job(int segment_fd) {
  void* first = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, segment_fd, 0);
  if (first == MAP_FAILED) {
    throw error(
        format("the job's shared memory cannot be mapped (%s): was this program started by "
               "`sojourn run`? Without it, unset SOJOURN_RANK",
               std::strerror(errno)));
  }
  const auto* header = static_cast<const job_segment*>(first);
  std::size_t bytes = header->segment_bytes;
  bool valid = header->magic == job_segment_magic;
  munmap(first, 4096);
  if (!valid) {
    throw error(
        "the job's shared memory was made by another version of Sojourn: start the program "
        "with the `sojourn` command it was built with");
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment_fd, 0);
  if (memory == MAP_FAILED) {
    throw error(format("the job's shared memory cannot be mapped: %s%s", std::strerror(errno),
                       doctor_hint));
  }
  return static_cast<job_segment*>(memory);
}

}  // namespace sojourn::detail
