// SPDX-License-Identifier: Apache-2.0
#include "observe/hang_json.hpp"

#include "base/check.hpp"

namespace sojourn::detail {

namespace {

std::string json_text(const std::string& text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      json += format("\\u%04x", c);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

const char* json_name(wait_kind kind) {
  switch (kind) {
    case wait_kind::ready:
      return "turn";
    case wait_kind::being_read:
      return "reader";
    case wait_kind::call:
      return "call";
    case wait_kind::result:
      return "result";
    case wait_kind::first:
      return "first";
    case wait_kind::collective:
      return "collective";
    case wait_kind::finish:
      return "finish";
    case wait_kind::room:
      return "room";
    case wait_kind::fibers:
      return "fibers";
    case wait_kind::time:
      return "time";
    case wait_kind::mutex:
      return "mutex";
    case wait_kind::static_variable:
      return "static_variable";
    case wait_kind::once:
      return "call_once";
    case wait_kind::condition:
      return "condition_variable";
    case wait_kind::semaphore:
      return "semaphore";
    case wait_kind::latch:
      return "latch";
    case wait_kind::dist_object:
      return "dist_object";
    case wait_kind::shared_page:
      return "shared_page";
    case wait_kind::shared_mutex:
      return "shared_mutex";
    case wait_kind::shared_barrier:
      return "shared_barrier";
    case wait_kind::shared_local_barrier:
      return "shared_local_barrier";
    case wait_kind::shared_atomic:
      return "shared_atomic";
    case wait_kind::shared_flag:
      return "shared_flag";
    case wait_kind::shared_condition:
      return "shared_condition_variable";
    case wait_kind::shared_counted_barrier:
      return "shared_counted_barrier";
    case wait_kind::barrier:
      return "barrier";
    case wait_kind::unknown:
      break;
  }
  return "unknown";
}

const char* json_name(rank_condition condition) {
  switch (condition) {
    case rank_condition::absent:
      return "absent";
    case rank_condition::waiting:
      return "waiting";
    case rank_condition::computing:
      return "computing";
    case rank_condition::silent:
      return "silent";
    case rank_condition::stopped:
      return "stopped";
    case rank_condition::frozen:
      return "frozen";
    case rank_condition::dying:
      return "dying";
    case rank_condition::finished:
      break;
  }
  return "finished";
}

std::string places_json(const std::vector<code_place>& places) {
  std::string json = "[";
  for (const code_place& place : places) {
    if (json.size() > 1) json += ", ";
    json += "{\"function\": " + json_text(place.function) + ", \"file\": " + json_text(place.file) +
            ", \"line\": " + std::to_string(place.line) + "}";
  }
  return json + "]";
}

std::string thread_json(const node_name& name) {
  return name.thread.empty() ? "" : ", \"thread\": " + json_text(name.thread);
}

/// Those for whom the fiber waits at an object of shared memory.
std::string missing_json(const wait_graph& waits, const node_name& name, std::size_t id) {
  const fiber_record& f = *waits.nodes()[id].fiber;
  std::string json;
  if (f.kind == wait_kind::shared_counted_barrier && f.results != 0)
    json = ", \"fibers\": " + std::to_string(f.results);
  if (const auto held = waits.holding_of(static_cast<int>(id)); held.mutex != nullptr) {
    json = ", \"holder\": {\"rank\": " + std::to_string(held.rank) +
           (held.node >= 0 ? ", \"id\": " + std::to_string(held.node) : "") +
           ", \"ended\": " + (held.mutex->fiber == held_mutex::ended ? "true" : "false") +
           ", \"locked_at\": " + places_json(name.locked_at) + "}";
  }
  if (f.kind != wait_kind::shared_barrier) return json;
  for (const wait_graph::absentee& a : waits.absent()) {
    json += (json.empty() ? ", \"missing\": [" : ", ") + format("{\"rank\": %d, ", a.rank) +
            format("\"fibers\": %u}", a.fibers);
  }
  return json.empty() ? "" : json + "]";
}

std::string fiber_json(const wait_graph& waits, const node_name& name, std::size_t id) {
  const fiber_record& f = *waits.nodes()[id].fiber;
  std::string json = "        {\"id\": " + std::to_string(id) +
                     ", \"main\": " + (f.is_main ? "true" : "false") + thread_json(name) +
                     ", \"waits_for\": {\"kind\": \"" + json_name(f.kind) + "\"";
  if (f.rank >= 0) json += ", \"rank\": " + std::to_string(f.rank);
  if (f.object != 0)
    json += format(", \"object\": \"0x%llx\"", static_cast<unsigned long long>(f.object));
  if (f.object != 0 && f.home >= 0) json += ", \"home\": " + std::to_string(f.home);
  json += missing_json(waits, name, id);
  if (f.kind == wait_kind::collective) json += ", \"operation\": " + json_text(operation_of(f));
  if (f.waited_ns != 0) {
    json += format(", \"seconds\": %.3f", static_cast<double>(f.waited_ns) / 1e9);
  }
  if (f.left_ns != fiber_record::no_limit) {
    json += format(", \"seconds_left\": %.3f", static_cast<double>(f.left_ns) / 1e9);
  }
  json += "}";
  if (f.result != 0) json += ", \"answers_rank\": " + std::to_string(home_of(f.result));
  return json + ", \"stack\": " + places_json(name.places) + "}";
}

}  // namespace

std::string hang_json(const hang_view& view, const wait_graph& waits,
                      const std::vector<node_name>& names, const std::string& sentence) {
  std::string json = "{\n  \"why\": " + json_text(view.why) + ",\n  \"deadlock\": " +
                     (view.proven || !view.circle.empty() ? "true" : "false") +
                     ",\n  \"sentence\": " + json_text(sentence) + ",\n  \"ranks\": [\n";
  const std::vector<wait_graph::node>& nodes = waits.nodes();
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const rank_view& rank = view.ranks[r];
    json += "    {\"rank\": " + std::to_string(r) + ", \"pid\": " + std::to_string(rank.pid) +
            (rank.program.empty() ? "" : ", \"program\": " + json_text(rank.program)) +
            ", \"state\": \"" + json_name(rank.condition) +
            "\", \"fibers_alive\": " + std::to_string(rank.report.fibers_alive) + ", \"stack\": ";
    std::string fibers;
    std::string stack = "[]";
    std::string running;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].rank != static_cast<int>(r)) continue;
      if (nodes[i].fiber == nullptr) {
        stack = places_json(names[i].places);
        running = thread_json(names[i]);
      } else {
        fibers += (fibers.empty() ? "\n" : ",\n") + fiber_json(waits, names[i], i);
      }
    }
    json += stack + running + ",\n     \"fibers\": [" + fibers + "]}" +
            (r + 1 < view.ranks.size() ? ",\n" : "\n");
  }
  json += "  ],\n  \"edges\": [";
  std::string edges;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].next < 0) continue;
    const wait_graph::node& to = nodes[static_cast<std::size_t>(nodes[i].next)];
    edges += (edges.empty() ? "\n" : ",\n") + std::string("    {\"from\": ") + std::to_string(i) +
             ", \"from_rank\": " + std::to_string(nodes[i].rank) +
             (to.fiber != nullptr ? ", \"to\": " + std::to_string(nodes[i].next) : "") +
             ", \"to_rank\": " + std::to_string(to.rank) + "}";
  }
  return json + edges + "]\n}\n";
}

}  // namespace sojourn::detail
