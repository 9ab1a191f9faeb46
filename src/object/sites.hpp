// SPDX-License-Identifier: Apache-2.0
// Call sites by name: SOJOURN_VIA='node::child=rpc,btree.cpp:120=migrate' tries another mechanism
// at an access without a rebuild.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sojourn::detail {

/// Reads SOJOURN_VIA. Throws sojourn::error naming the part that is wrong.
void attach_sites();

/// One entry of SOJOURN_VIA, and what became of it.
struct site_rule_use {
  std::string_view name;
  bool matched;         ///< Some access on this rank was to it.
  std::string nearest;  ///< When none was: the access with the nearest name; "" without one.
  std::size_t edits;    ///< How near that is.
};

/// All entries, in their order.
std::vector<site_rule_use> site_rule_uses();

/// The sentence about an entry that matched nothing.
std::string unmatched_rule_text(std::string_view name, std::string_view nearest);

/// The method's name in what a compiler's __PRETTY_FUNCTION__ says of a template over it, such as
/// "node::child".
std::string_view method_name_in(std::string_view pretty);

}  // namespace sojourn::detail
