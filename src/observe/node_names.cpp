// SPDX-License-Identifier: Apache-2.0
#include "observe/node_names.hpp"

#include <cstring>
#include <map>

#include "rpc/collective_messages.hpp"

namespace sojourn::detail {

namespace {

/// The name, fit for one line and for JSON even when a broken rank has written it.
std::string text_of(const told_name& told) {
  std::string text(told, strnlen(told, sizeof told));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace

std::vector<node_name> names_of(const hang_view& view, const wait_graph& waits) {
  std::map<std::string, code_places> places_of;
  std::vector<node_name> names;
  const auto places_on = [&](int rank) -> code_places& {
    const std::string& file = view.ranks[static_cast<std::size_t>(rank)].file;
    return places_of.try_emplace(file, file).first->second;
  };
  for (const wait_graph::node& n : waits.nodes()) {
    const rank_view& rank = view.ranks[static_cast<std::size_t>(n.rank)];
    code_places& places = places_on(n.rank);
    if (n.fiber != nullptr) {
      names.push_back({places.of(n.fiber->frames, n.fiber->frame_count), text_of(n.fiber->thread)});
    } else {
      const rank_report& report = rank.report;
      names.push_back({places.of(report.stack, report.stack_count),
                       report.stack_count > 0 ? text_of(report.runs_thread) : ""});
    }
    const wait_graph::holding held = waits.holding_of(static_cast<int>(names.size()) - 1);
    if (held.mutex != nullptr)
      names.back().locked_at = places_on(held.rank).of(&held.mutex->locked_at, 1);
  }
  return names;
}

std::string operation_of(const fiber_record& fiber) {
  return name_of(static_cast<collective>(fiber.operation));
}

}  // namespace sojourn::detail
