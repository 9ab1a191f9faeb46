// SPDX-License-Identifier: Apache-2.0
// Call sites by name: SOJOURN_VIA='node::child=rpc,btree.cpp:120=migrate' tries another mechanism
// at an access without a rebuild.
#pragma once

#include <string>
#include <string_view>

namespace sojourn::detail {

/// Reads SOJOURN_VIA. Throws sojourn::error naming the part that is wrong.
void attach_sites();

/// The method's name in what a compiler's __PRETTY_FUNCTION__ says of a template over it, such as
/// "node::child".
std::string_view method_name_in(std::string_view pretty);

}  // namespace sojourn::detail
