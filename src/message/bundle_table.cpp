// SPDX-License-Identifier: Apache-2.0
#include "message/bundle_table.hpp"

namespace sojourn::detail {

bundle* bundles = nullptr;
std::size_t bundles_waiting = 0;
std::uint16_t bundle_handler = 0;

std::size_t bundle_bytes(int to) {
  const bundle& b = bundles[to];
  if (b.is_empty()) return 0;
  return b.bytes() + (b.open->scope != nullptr ? sizeof(scope_ticket) : 0);
}

}  // namespace sojourn::detail
