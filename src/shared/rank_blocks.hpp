// SPDX-License-Identifier: Apache-2.0
// What a rank has allocated of shared memory: from a part of its own for each protocol, and, where
// a report is wanted, with what is known of each block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include "shared/pages/allocator.hpp"
#include "shared/pages/page.hpp"
#include "shared/shared_report.hpp"

namespace sojourn::detail::pages {

class rank_blocks {
 public:
  /// The parts follow each other from the address `first`, in the order of the protocols.
  rank_blocks(std::uint64_t first, std::uint64_t bytes_of_part, std::pmr::memory_resource* memory);

  /// See allocator. Errors: shared::exhausted, which says what helps.
  allocator::block allocate(std::size_t bytes, std::size_t align, protocol_kind how);
  allocator& of(protocol_kind how) { return parts_[static_cast<std::size_t>(how)]; }
  const allocator& of(protocol_kind how) const { return parts_[static_cast<std::size_t>(how)]; }
  /// Of all protocols.
  std::array<allocator, protocol_kinds>& parts() { return parts_; }

  // --- For the report, which tells also of blocks that were freed

  /// A block was allocated. `code`: of the program, where.
  void note(std::uint64_t at, std::size_t bytes, std::uint64_t code);
  /// See shared::name.
  void name(std::uint64_t at, const char* text) { notes_[at].name = text; }
  std::vector<named_block> told() const;

 private:
  struct note_of_block {
    std::uint64_t bytes = 0;
    std::uint64_t code = 0;
    std::pmr::string name;
  };
  [[noreturn]] void refuse(std::size_t bytes, protocol_kind how) const;

  std::array<allocator, protocol_kinds> parts_;
  std::pmr::map<std::uint64_t, note_of_block> notes_;  ///< By address.
};

}  // namespace sojourn::detail::pages
