// SPDX-License-Identifier: Apache-2.0
// Which rank owns an address. The global heap is divided among the ranks in memory/address_map.cpp;
// code that needs the owner of an address asks here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

inline constexpr int no_owner = -1;

/// The rank that owns `address`; no_owner when the address is null or lies in no rank's heap.
[[gnu::always_inline]] inline int owner_of(std::uint64_t address) {
  const std::uint64_t owner = (address - job.heap) >> job.heap_shift;
  return owner < static_cast<std::uint64_t>(job.count) ? static_cast<int>(owner) : no_owner;
}

/// True when this rank owns `address`.
[[gnu::always_inline]] inline bool is_here(std::uint64_t address) {
  return address - job.my_heap < job.my_heap_bytes;
}
/// True when it owns all these bytes.
[[gnu::always_inline]] inline bool is_here(std::uint64_t address, std::size_t bytes) {
  const std::uint64_t offset = address - job.my_heap;
  return offset < job.my_heap_bytes && bytes <= job.my_heap_bytes - offset;
}
/// True when an access to `address` is a plain call: is_here(), but false in checked mode.
[[gnu::always_inline]] inline bool is_quick(std::uint64_t address) {
  return address - job.my_heap < job.quick_heap_bytes;
}

/// The first address of a rank's heap.
[[gnu::always_inline]] inline std::uint64_t heap_of(int rank) {
  return job.heap + (static_cast<std::uint64_t>(rank) << job.heap_shift);
}

/// Throw sojourn::error: `address` is null or lies in no rank's heap. `method`: the compiler's name
/// of the method that is called there.
[[noreturn]] void bad_access(std::uint64_t address, const char* method);
[[noreturn]] void bad_range(std::uint64_t address, std::size_t bytes);

/// The rank that owns the object whose method is called. Errors: bad_access.
[[gnu::always_inline]] inline int owner_of_object(std::uint64_t address, const char* method) {
  const int owner = owner_of(address);
  if (owner == no_owner) [[unlikely]]
    bad_access(address, method);
  return owner;
}
/// The rank that owns all these bytes. Errors: bad_range.
[[gnu::always_inline]] inline int owner_of_bytes(std::uint64_t address, std::size_t bytes) {
  const int owner = owner_of(address);
  const std::uint64_t last = bytes == 0 ? address : address + bytes - 1;
  if (owner == no_owner || last < address || owner_of(last) != owner) [[unlikely]]
    bad_range(address, bytes);
  return owner;
}

}  // namespace sojourn::detail
