// SPDX-License-Identifier: Apache-2.0
#include "shared/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/doctor_hint.hpp"
#include "base/owned_descriptors.hpp"
#include "memory/memory_file.hpp"

namespace sojourn::detail::pages {

namespace {

/// Pages are mapped in chunks of this size: each takes some system calls and, at first, no memory.
constexpr std::size_t chunk_bytes = std::size_t{64} << 20;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

void require_page_size() {
  const long bytes = sysconf(_SC_PAGESIZE);
  if (static_cast<std::size_t>(bytes) == page_bytes) return;
  throw error(
      format("shared memory needs pages of %zu bytes, and this kernel's have %ld: run on a "
             "kernel with smaller pages, or without shared memory",
             page_bytes, bytes));
}

[[noreturn]] void refuse(std::size_t bytes) {
  // A view is half a unit, and a unit the greatest power of two in an eighth of the region.
  throw error(
      format("the shared region of this job has room for %zu MiB, and %zu MiB are asked "
             "for: share less, or set SOJOURN_REGION_GIB to %zu or more",
             mapping::capacity() >> 20, (bytes + (1u << 20) - 1) >> 20,
             (16 * std::bit_ceil(bytes)) >> 30));
}

}  // namespace

mapping::mapping(protection& protection) : protection_(protection) {
  require_page_size();
  file_ = make_memory_file("sojourn-shared", 0);
  keep_memory_file_long(file_);
  own_descriptor(file_);
}

mapping::~mapping() {
  unmap(0, bytes_);
  close_owned(file_);
}

void mapping::map_view(std::uint64_t at, std::size_t bytes, int allows) {
  const std::uint64_t offset = (at - addresses.shared) % capacity();
  void* const start = pointer(at);
  if (mmap(start, bytes, allows, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_,
           static_cast<off_t>(offset)) == MAP_FAILED ||
      // Not passed on to a child that the program makes by fork(): the child would find the
      // parent's pages open.
      madvise(start, bytes, MADV_DONTFORK) != 0) {
    throw error(format("%zu MiB of shared memory cannot be mapped: %s%s", bytes >> 20,
                       std::strerror(errno), doctor_hint));
  }
  // A huge page would take memory for pages that are on other ranks.
  madvise(start, bytes, MADV_NOHUGEPAGE);
  // Left out of core dumps: a dump would contain all that is mapped, and writing it would fill
  // memory with zeros.
  madvise(start, bytes, MADV_DONTDUMP);
}

void mapping::unmap(std::size_t from, std::size_t bytes) {
  if (bytes == 0) return;
  for (const std::uint64_t view : {addresses.shared, addresses.shared + capacity()}) {
    mmap(pointer(view + from), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
}

void mapping::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (bytes > capacity()) refuse(bytes);
  const std::size_t whole = (bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
  const std::size_t wanted = std::min(whole, capacity());
  const std::size_t more = wanted - bytes_;
  lengthen_memory_file(file_, wanted);
  try {
    const std::uint64_t begin = addresses.shared + bytes_;
    map_view(begin, more, PROT_NONE);
    map_view(begin + capacity(), more, PROT_READ | PROT_WRITE);
    protection_.cover({page_of(begin), static_cast<std::uint32_t>(more / page_bytes)});
  } catch (...) {
    unmap(bytes_, more);
    throw;
  }
  bytes_ = wanted;
}

}  // namespace sojourn::detail::pages
