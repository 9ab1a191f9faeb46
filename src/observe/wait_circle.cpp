// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_circle.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace sojourn::detail {

namespace {

/// Two reports with the same key tell of the same wait: the fiber has been in it from the first
/// report to the second.
using wait_key = std::tuple<int, std::uint64_t, std::uint64_t, ticket_id, ticket_id, ticket_id>;
wait_key key_of(int rank, const fiber_record& f) {
  return {rank, f.piece, f.since, f.waits_for, f.result, f.scope};
}

/// True when a later report can tell whether the fiber is still in the same wait.
bool is_certain(const fiber_record& f) { return waits_for_a_fiber(f) && f.since != 0; }

template <class Visit>
void each_fiber(const hang_view& view, Visit visit) {
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const rank_view& rank = view.ranks[r];
    if (rank.condition != rank_condition::waiting && rank.condition != rank_condition::computing) {
      continue;
    }
    for (std::uint32_t i = 0; i < rank.report.fiber_count; ++i) {
      visit(told_fiber{static_cast<int>(r), i}, rank.report.fibers[i]);
    }
  }
}

/// Who waits for whom, but only waits that are certain.
class certain_waits {
 public:
  certain_waits(const hang_view& before, const hang_view& now) {
    std::set<wait_key> waited;
    each_fiber(before, [&](const told_fiber& at, const fiber_record& f) {
      waited.insert(key_of(at.rank, f));
    });
    std::map<ticket_id, std::size_t> giver;
    std::map<ticket_id, ticket_id> source;
    std::map<std::pair<int, std::uint32_t>, std::size_t> number;
    std::map<std::uint64_t, std::pair<int, std::uint32_t>> has_shared;  // by the mutex
    each_fiber(now, [&](const told_fiber& at, const fiber_record& f) {
      if (!is_certain(f) || !waited.contains(key_of(at.rank, f))) return;
      number[{at.rank, at.number}] = fibers_.size();
      if (f.result != 0) giver[f.result] = fibers_.size();
      fibers_.push_back({at, &f, {}});
    });
    for (std::size_t r = 0; r < now.ranks.size(); ++r) {
      const rank_report& report = now.ranks[r].report;
      for (std::uint32_t h = 0; h < report.held_count; ++h) {
        if (report.held[h].fiber >= 0)
          has_shared[report.held[h].object] = {static_cast<int>(r),
                                               static_cast<std::uint32_t>(report.held[h].fiber)};
      }
    }
    for (const rank_view& rank : now.ranks) {
      for (std::uint32_t i = 0; i < rank.report.link_count; ++i) {
        source[rank.report.links[i].to] = rank.report.links[i].from;
      }
    }
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      const fiber_record& f = *fibers_[i].record;
      std::vector<std::size_t>& next = fibers_[i].waits_for;
      switch (f.kind) {
        case wait_kind::call:
        case wait_kind::result: {
          ticket_id ticket = f.waits_for;
          for (int steps = 0; steps < 64; ++steps) {
            if (auto found = giver.find(ticket); found != giver.end()) {
              next.push_back(found->second);
              break;
            }
            auto from = source.find(ticket);
            if (from == source.end()) break;
            ticket = from->second;
          }
          break;
        }
        case wait_kind::mutex:
        case wait_kind::static_variable:
        case wait_kind::once:
          if (f.holder >= 0) {
            auto holder = number.find({fibers_[i].at.rank, static_cast<std::uint32_t>(f.holder)});
            if (holder != number.end()) next.push_back(holder->second);
          }
          break;
        case wait_kind::shared_mutex:
          if (auto has = has_shared.find(f.object); has != has_shared.end()) {
            auto holder = number.find(has->second);
            if (holder != number.end()) next.push_back(holder->second);
          }
          break;
        case wait_kind::finish:  // it waits for each fiber of the scope
          for (std::size_t j = 0; j < fibers_.size(); ++j) {
            if (j != i && fibers_[j].record->scope == f.waits_for) next.push_back(j);
          }
          break;
        default:
          break;
      }
    }
  }

  std::vector<told_fiber> circle() {
    std::vector<told_fiber> told;
    for (std::size_t i = 0; i < fibers_.size() && told.empty(); ++i) {
      if (fibers_[i].seen != look::never) continue;
      for (std::size_t at : circle_from(i)) told.push_back(fibers_[at].at);
    }
    return told;
  }

 private:
  enum class look { never, on_way, done };
  struct waiting {
    told_fiber at;
    const fiber_record* record;
    std::vector<std::size_t> waits_for;
    look seen = look::never;
    std::size_t looked = 0;  ///< How many of `waits_for` were looked at.
  };

  /// Searches depth first, without recursion, because a chain may have as many steps as there are
  /// fibers.
  std::vector<std::size_t> circle_from(std::size_t start) {
    std::vector<std::size_t> way{start};
    fibers_[start].seen = look::on_way;
    while (!way.empty()) {
      waiting& f = fibers_[way.back()];
      if (f.looked == f.waits_for.size()) {
        f.seen = look::done;
        way.pop_back();
        continue;
      }
      std::size_t next = f.waits_for[f.looked++];
      if (fibers_[next].seen == look::on_way) {
        way.erase(way.begin(), std::find(way.begin(), way.end(), next));
        return way;
      }
      if (fibers_[next].seen == look::never) {
        fibers_[next].seen = look::on_way;
        way.push_back(next);
      }
    }
    return {};
  }

  std::vector<waiting> fibers_;
};

}  // namespace

std::vector<told_fiber> circle_of_waits(const hang_view& before, const hang_view& now) {
  return certain_waits(before, now).circle();
}

}  // namespace sojourn::detail
