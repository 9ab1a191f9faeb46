// SPDX-License-Identifier: Apache-2.0
// What users set about shared memory, in variables of the environment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/pages/page.hpp"
#include "shared/protection.hpp"

namespace sojourn::detail::pages {

/// Read when the rank starts, so that a wrong value is told at once.
struct shared_settings {
  shared_settings();

  protocol_kind usual;          ///< SOJOURN_SHARED.
  std::uint32_t pages_a_fault;  ///< SOJOURN_SHARED_FETCH.
  std::size_t collect_bytes;    ///< SOJOURN_SHARED_DIFFS.
  std::uint64_t bell_after_ns;  ///< SOJOURN_SHARED_BELL_US; for tests.
  std::size_t part_bytes;  ///< SOJOURN_SHARED_PART_BYTES: longer messages go in parts; for tests.
  protection_way protected_by;  ///< SOJOURN_SHARED_PROTECTION.
  bool report_text;             ///< SOJOURN_SHARED_REPORT.
  const char* report_json;      ///< SOJOURN_SHARED_REPORT_JSON: a file; or null.

  bool wants_report() const { return report_text || report_json != nullptr; }
};
/// The settings of this rank. Requires: read_settings().
const shared_settings& settings();
/// Errors: sojourn::error.
void read_settings();

}  // namespace sojourn::detail::pages
