// SPDX-License-Identifier: Apache-2.0
#include "message/bundle_table.hpp"

#include "message/dispatcher_state.hpp"

namespace sojourn::detail {

bundle* bundles = nullptr;
std::size_t bundles_waiting = 0;
std::uint16_t bundle_handler = 0;

std::size_t bundle_bytes(int to) {
  const auto with_ticket = [](std::size_t bytes, const void* scope) {
    return bytes + (scope != nullptr ? sizeof(scope_ticket) : 0);
  };
  if (const peer& p = peer_of(to); !p.late_bundles.empty())
    return with_ticket(p.late_bundles.front().bytes, p.late_bundles.front().scope);
  const bundle& b = bundles[to];
  return b.is_empty() ? 0 : with_ticket(b.bytes(), b.open->scope);
}

}  // namespace sojourn::detail
