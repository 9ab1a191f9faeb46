// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_graph.hpp"

#include <algorithm>
#include <utility>

#include "sojourn/detail/collective_plan.hpp"

namespace sojourn::detail {

namespace {

constexpr int any_rank = -1;  // A record without a rank has this.

}  // namespace

bool has_limit(const fiber_record& fiber) { return fiber.left_ns != fiber_record::no_limit; }

bool is_in_body(const fiber_record& fiber) {
  return fiber.is_main && fiber.kind != wait_kind::fibers &&
         static_cast<collective>(fiber.operation) != collective::end_of_program;
}

wait_graph::wait_graph(const hang_view& view) : view_(view) {
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const rank_view& rank = view.ranks[r];
    const rank_report& report = rank.report;
    const int number = static_cast<int>(r);
    const bool computes = rank.condition == rank_condition::computing;
    first_.push_back(static_cast<int>(nodes_.size()));
    if (computes) {
      if (report.stack_count > 0 && report.runs_for != 0) {
        giver_[report.runs_for] = static_cast<int>(nodes_.size());
      }
      nodes_.push_back({number});
    }
    if (!computes && rank.condition != rank_condition::waiting) continue;
    const std::uint32_t told = report.fiber_count + computes;
    if (report.fibers_alive > told) untold_ += report.fibers_alive - told;
    for (std::uint32_t i = 0; i < report.fiber_count; ++i) {
      const fiber_record& fiber = report.fibers[i];
      if (fiber.result != 0) giver_[fiber.result] = static_cast<int>(nodes_.size());
      nodes_.push_back({number, &fiber});
    }
    for (std::uint32_t i = 0; i < report.link_count; ++i) {
      source_[report.links[i].to] = report.links[i].from;
    }
  }
  first_.push_back(static_cast<int>(nodes_.size()));
  const auto find_next = [this](bool at_barrier) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const fiber_record* f = nodes_[i].fiber;
      if (f != nullptr && (f->kind == wait_kind::shared_barrier) == at_barrier)
        nodes_[i].next = awaited_by(static_cast<int>(i));
    }
  };
  find_next(false);
  find_absent();
  find_next(true);
  for (const told_fiber& told : view.circle) circle_.push_back(node_of(told));
  for (std::size_t i = 0; i < circle_.size(); ++i) {
    // If the fiber waits for several others, shows its wait for the next one in the circle, which
    // is known never to end.
    nodes_[static_cast<std::size_t>(circle_[i])].next = circle_[(i + 1) % circle_.size()];
  }
  if (!circle_.empty()) circle_.push_back(circle_.front());
}

/// True for a fiber that takes part in shared::barrier(), has not arrived there, and does not wait
/// for an activation of its own that has arrived.
bool wait_graph::is_absent(const node& n) const {
  if (n.fiber == nullptr || !n.fiber->takes_part) return false;
  const fiber_record* last = at(follow(static_cast<int>(&n - nodes_.data())).nodes.back()).fiber;
  return last == nullptr || last->kind != wait_kind::shared_barrier ||
         (last->takes_part && last != n.fiber);
}

/// Each rank counts the fibers that began there. If some fibers have arrived on other ranks, only
/// the fibers' own records tell who is missing. If nobody is missing by these, ranks that have told
/// nothing are listed.
void wait_graph::find_absent() {
  bool some_moved = false;
  for (const rank_view& rank : view_.ranks) some_moved |= rank.report.barrier.guests != 0;
  const auto absent = [this](const node& n) { return is_absent(n); };
  std::vector<absentee> untold;
  for (std::size_t r = 0; r < view_.ranks.size(); ++r) {
    const rank_view& rank = view_.ranks[r];
    const barrier_part& part = rank.report.barrier;
    const int number = static_cast<int>(r);
    const int running = running_on(number);
    if (part.members == 0 && rank.condition != rank_condition::waiting &&
        rank.condition != rank_condition::finished) {
      untold.push_back({number, 1, 1, running});
    }
    if (part.arrived >= part.members) continue;
    std::uint32_t missing = part.members - part.arrived;
    if (some_moved && running < 0) {
      missing = static_cast<std::uint32_t>(
          std::count_if(nodes_.begin() + first_[r], nodes_.begin() + first_[r + 1], absent));
    }
    if (missing == 0) continue;
    absent_.push_back(
        {number, missing, part.members, running >= 0 ? running : first_on(number, absent)});
  }
  if (absent_.empty()) absent_ = std::move(untold);
}

wait_graph::holding wait_graph::holding_of(int i) const {
  const fiber_record* f = at(i).fiber;
  if (f == nullptr || f->kind != wait_kind::shared_mutex) return {};
  for (std::size_t r = 0; r < view_.ranks.size(); ++r) {
    const rank_report& report = view_.ranks[r].report;
    for (std::uint32_t h = 0; h < report.held_count; ++h) {
      const held_mutex& held = report.held[h];
      if (held.object != f->object) continue;
      const int rank = static_cast<int>(r);
      const int holder = held.fiber >= 0 ? first_fiber_of(rank) + held.fiber
                         : held.fiber == fiber_record::holder_runs ? running_on(rank)
                                                                   : -1;
      return {rank, &held, holder};
    }
  }
  return {};
}

std::size_t wait_graph::waiting_with(int i) const {
  const fiber_record& f = *at(i).fiber;
  return static_cast<std::size_t>(std::ranges::count_if(nodes_, [&f](const node& n) {
    return n.fiber != nullptr && n.fiber->kind == f.kind && n.fiber->object == f.object;
  }));
}

wait_graph::route wait_graph::follow(int from) const {
  route way{{}, false};
  // A wait with a time limit ends, whatever it is for.
  const auto ends = [this](int i) { return at(i).fiber != nullptr && has_limit(*at(i).fiber); };
  for (int i = from; i >= 0; i = ends(i) ? -1 : at(i).next) {
    const bool seen = std::find(way.nodes.begin(), way.nodes.end(), i) != way.nodes.end();
    way.nodes.push_back(i);
    if (seen) {
      way.closed = true;
      break;
    }
  }
  return way;
}

/// True when a chain ends at something that may still end its waits: code that runs, or a rank that
/// is held.
bool wait_graph::leads_on(const route& way) const {
  const fiber_record* last = at(way.nodes.back()).fiber;
  if (last == nullptr) return true;
  if (last->rank < 0 || last->rank >= static_cast<int>(view_.ranks.size())) return false;
  const rank_condition condition = view_.ranks[static_cast<std::size_t>(last->rank)].condition;
  return condition == rank_condition::stopped || condition == rank_condition::frozen ||
         condition == rank_condition::dying;
}

bool wait_graph::is_better(const route& way, const route& than) const {
  if (way.closed != than.closed) return way.closed;
  if (leads_on(way) != leads_on(than)) return leads_on(way);
  const bool in_body = is_in_body(*at(way.nodes.front()).fiber);
  if (in_body != is_in_body(*at(than.nodes.front()).fiber)) return in_body;
  return way.closed ? way.nodes.size() < than.nodes.size() : way.nodes.size() > than.nodes.size();
}

bool wait_graph::waits_for_its_turn(const node& n) {
  return n.fiber != nullptr && n.fiber->kind == wait_kind::ready && n.next < 0;
}

wait_graph::route wait_graph::most_telling() const {
  route best{{}, false};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // Leaves out fibers that wait only for their turn: they go on, as one that runs does.
    if (nodes_[i].fiber == nullptr || waits_for_its_turn(nodes_[i])) continue;
    route way = follow(static_cast<int>(i));
    if (best.nodes.empty() || is_better(way, best)) best = std::move(way);
  }
  return best;
}

int wait_graph::where_all_lead() const {
  int end = -1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const route way = follow(static_cast<int>(i));
    if (way.closed || at(way.nodes.back()).fiber != nullptr) return -1;
    if (end >= 0 && end != way.nodes.back()) return -1;
    end = way.nodes.back();
  }
  return end;
}

bool wait_graph::no_main_goes_on() const {
  if (circle_.empty() || std::ranges::any_of(circle_, [this](int n) {
        return at(n).fiber->kind == wait_kind::shared_mutex;
      })) {
    return false;
  }
  for (std::size_t r = 0; r < view_.ranks.size(); ++r) {
    if (view_.ranks[r].condition == rank_condition::finished) continue;
    const int main = main_of(static_cast<int>(r));
    if (main < 0) return false;
    if (!is_in_body(*at(main).fiber)) continue;
    const std::vector<int> way = follow(main).nodes;
    if (std::none_of(way.begin(), way.end(), [this](int n) {
          return std::find(circle_.begin(), circle_.end(), n) != circle_.end();
        })) {
      return false;
    }
  }
  return true;
}

int wait_graph::first_fiber_of(int rank) const {
  return first_[static_cast<std::size_t>(rank)] + (running_on(rank) >= 0);
}

int wait_graph::node_of(const told_fiber& told) const {
  return first_fiber_of(told.rank) + static_cast<int>(told.number);
}

/// The result of a ticket may be that of another one, and so on.
int wait_graph::giver_of(ticket_id ticket) const {
  constexpr int links_followed = 64;
  for (int i = 0; i < links_followed; ++i) {
    if (auto found = giver_.find(ticket); found != giver_.end()) return found->second;
    auto from = source_.find(ticket);
    if (from == source_.end()) break;
    ticket = from->second;
  }
  return -1;
}

template <class Condition>
int wait_graph::first_on(int rank, Condition holds) const {
  if (rank >= static_cast<int>(view_.ranks.size())) return -1;
  const int begin = rank == any_rank ? 0 : first_[static_cast<std::size_t>(rank)];
  const int end = rank == any_rank ? static_cast<int>(nodes_.size())
                                   : first_[static_cast<std::size_t>(rank) + 1];
  for (int i = begin; i < end; ++i) {
    if (holds(at(i))) return i;
  }
  return -1;
}

int wait_graph::running_on(int rank) const {
  return first_on(rank, [](const node& n) { return n.fiber == nullptr; });
}

int wait_graph::main_of(int rank) const {
  return first_on(rank, [](const node& n) { return n.fiber != nullptr && n.fiber->is_main; });
}

int wait_graph::awaited_by(int i) const {
  const node& n = at(i);
  const fiber_record& f = *n.fiber;
  auto others = [&n](auto holds) {
    return [&n, holds](const node& o) { return &o != &n && o.fiber != nullptr && holds(o); };
  };
  switch (f.kind) {
    case wait_kind::call:
    case wait_kind::result: {
      const int giver = giver_of(f.waits_for);
      return giver >= 0 || f.rank < 0 ? giver : running_on(f.rank);
    }
    case wait_kind::collective: {
      if (int running = running_on(f.rank); running >= 0) return running;
      const int there = first_on(
          f.rank, others([](const node& o) { return o.fiber->kind == wait_kind::collective; }));
      return there >= 0 ? there : main_of(f.rank);
    }
    case wait_kind::finish: {
      const int inside =
          first_on(any_rank, others([&f](const node& o) { return o.fiber->scope == f.waits_for; }));
      return inside >= 0 ? inside : running_on(any_rank);
    }
    case wait_kind::room: {
      if (int running = running_on(f.rank); running >= 0) return running;
      const int serving =
          first_on(f.rank, others([&n](const node& o) {
                     return o.fiber->result != 0 && home_of(o.fiber->result) == n.rank;
                   }));
      return serving >= 0 ? serving : main_of(f.rank);
    }
    case wait_kind::fibers: {
      const int other = first_on(n.rank, others([](const node&) { return true; }));
      return other >= 0 ? other : running_on(n.rank);
    }
    case wait_kind::ready:
      return running_on(n.rank);
    case wait_kind::mutex:
    case wait_kind::static_variable:
    case wait_kind::once:
      if (f.holder == fiber_record::holder_runs) return running_on(n.rank);
      return f.holder < 0 ? -1 : first_fiber_of(n.rank) + f.holder;
    case wait_kind::shared_mutex:
      return holding_of(i).node;
    case wait_kind::shared_barrier:
      return absent_.empty() ? -1 : absent_.front().node;
    case wait_kind::shared_local_barrier: {
      if (int running = running_on(n.rank); running >= 0) return running;
      return first_on(n.rank, others([](const node& o) {
                        return o.fiber->takes_part &&
                               o.fiber->kind != wait_kind::shared_local_barrier;
                      }));
    }
    default:
      return -1;
  }
}

}  // namespace sojourn::detail
