// SPDX-License-Identifier: Apache-2.0
// A hang report for programs; docs/when_it_hangs.md describes its members.
#pragma once

#include <string>
#include <vector>

#include "observe/hang_view.hpp"
#include "observe/node_names.hpp"
#include "observe/wait_graph.hpp"

namespace sojourn::detail {

/// The report as JSON. `sentence`: what is told to people (hang_text.hpp).
std::string hang_json(const hang_view& view, const wait_graph& waits,
                      const std::vector<node_name>& names, const std::string& sentence);

}  // namespace sojourn::detail
