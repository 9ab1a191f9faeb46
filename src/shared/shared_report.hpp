// SPDX-License-Identifier: Apache-2.0
// The report of a job's shared memory. Each rank writes its part as text; rank 0 adds the parts up
// and makes of them a text for people and JSON for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shared/pages/page.hpp"
#include "shared/pages/page_report.hpp"
#include "sojourn/shared/counters.hpp"

namespace sojourn::detail::pages {

/// A block of shared memory.
struct named_block {
  std::uint64_t at;
  std::uint64_t bytes;
  std::string name;   ///< What shared::name() has called it; "" otherwise.
  std::string where;  ///< The source line, or the function, that allocated it; "" if not known.
};

/// What faulted on a page, and how often.
struct fault_site {
  page_number page;
  std::uint64_t times;
  std::string where;
};

/// What one rank knows, or what all ranks know together.
struct report_part {
  std::vector<sojourn::shared::counters> ranks;  ///< Of this one rank, or of all.
  std::vector<named_block> blocks;
  std::map<page_number, page_notes> pages;
  std::vector<fault_site> sites;
  std::vector<race_note> races;
};

/// One rank's part as text, for rank 0.
std::string written(const report_part& part);
/// The report of all ranks. The parts are in the order of the ranks, made by written(); lines that
/// cannot be read are left out. `first_page`: the address of page 0.
class shared_report {
 public:
  shared_report(const std::vector<std::string>& parts, std::uint64_t first_page);

  /// Shows at most `pages_shown` pages, the worst first.
  std::string text(std::size_t pages_shown = 20) const;
  std::string json() const;

 private:
  void read(const std::string& part);
  void join_parts();
  std::uint64_t address_of(page_number page) const { return first_page_ + page * page_bytes; }
  const named_block* block_at(std::uint64_t address) const;
  std::string place_of(page_number page, std::uint32_t offset) const;
  std::vector<page_number> worst_first() const;
  std::vector<fault_site> sites_of(page_number page) const;
  std::string advice(const page_notes& p) const;

  const std::uint64_t first_page_;
  report_part all_;
};

}  // namespace sojourn::detail::pages
