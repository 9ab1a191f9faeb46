// SPDX-License-Identifier: Apache-2.0
#include "shared/rank_blocks.hpp"

#include "base/check.hpp"
#include "frames/source_place.hpp"
#include "memory/address_map.hpp"
#include "shared/mapping.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/shared/memory.hpp"

namespace sojourn::detail::pages {

rank_blocks::rank_blocks(std::uint64_t first, std::uint64_t bytes_of_part,
                         std::pmr::memory_resource* memory)
    : parts_{allocator(first, bytes_of_part, memory),
             allocator(first + bytes_of_part, bytes_of_part, memory),
             allocator(first + 2 * bytes_of_part, bytes_of_part, memory)},
      notes_(memory) {}

allocator::block rank_blocks::allocate(std::size_t bytes, std::size_t align, protocol_kind how) {
  const allocator::block b = of(how).allocate(bytes, align);
  if (b.at == 0) refuse(bytes, how);
  return b;
}

void rank_blocks::note(std::uint64_t at, std::size_t bytes, std::uint64_t code) {
  notes_.insert_or_assign(at, note_of_block{bytes, code, {}});
}

std::vector<named_block> rank_blocks::told() const {
  std::vector<named_block> all;
  for (const auto& [at, b] : notes_)
    all.push_back({at, b.bytes, std::string(b.name), source_place(b.code)});
  return all;
}

void rank_blocks::refuse(std::size_t bytes, protocol_kind how) const {
  static constexpr const char* names[protocol_kinds] = {"lmw", "lsw", "seq"};
  const allocator& part = of(how);
  std::string text = format(
      "%zu bytes of shared memory are asked for on rank %d: of the %zu KiB that a rank has "
      "for the protocol %s, %zu are allocated, and %zu are free in one piece; free some, "
      "let other ranks allocate, too",
      bytes, job.me, part.capacity() >> 10, names[static_cast<std::size_t>(how)],
      part.allocated_bytes() >> 10, part.longest_free() >> 10);
  // A view is a sixteenth of the region, or rather of the power of two below it.
  std::size_t region = 16 * mapping::capacity();
  std::size_t room = part.capacity();
  do {
    region *= 2;
    room *= 2;
  } while (room - part.allocated_bytes() < bytes && region <= address_map::default_bytes / 2);
  if (room - part.allocated_bytes() >= bytes && region <= address_map::default_bytes)
    text += format(", or set SOJOURN_REGION_GIB to %zu or more", region >> 30);
  throw shared::exhausted(text.c_str());
}

}  // namespace sojourn::detail::pages
