// SPDX-License-Identifier: Apache-2.0
// A hang report for people.
#pragma once

#include <string>
#include <vector>

#include "observe/hang_view.hpp"
#include "observe/node_names.hpp"
#include "observe/wait_graph.hpp"

namespace sojourn::detail {

/// One sentence that says where the waits lead, without a full stop or newline.
std::string hang_sentence(const hang_view& view, const wait_graph& waits,
                          const std::vector<node_name>& names);

/// Lines that tell of each rank and of what its fibers wait for.
std::string ranks_text(const hang_view& view, const wait_graph& waits,
                       const std::vector<node_name>& names);

}  // namespace sojourn::detail
