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

/// One entry of SOJOURN_VIA, and whether it was used.
struct site_rule_use {
  std::string_view name;
  bool matched;  ///< An access on this rank matched it.
  std::string
      nearest;  ///< If not: the name of the access that is nearest to it; "" when there is none.
  std::size_t edits;  ///< How many edits away that name is.
};

/// All entries, in their order.
std::vector<site_rule_use> site_rule_uses();

/// The sentence about an entry that matched nothing.
std::string unmatched_rule_text(std::string_view name, std::string_view nearest);

/// The method's name, such as "node::child", in the __PRETTY_FUNCTION__ of a template that has the
/// method as a parameter.
std::string_view method_name_in(std::string_view pretty);

}  // namespace sojourn::detail
