// SPDX-License-Identifier: Apache-2.0
#include "walk.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <unordered_set>
#include <vector>

#include "machine.hpp"

namespace page_model {
namespace {

/// No program needs so many steps; a walk that takes more goes round in circles.
constexpr unsigned long steps_max = 20000;

/// Which steps a walk avoids. Some walks avoid instructions, some messages, some a rank, because
/// even choices hardly ever lead to the orders of steps in which one of these comes late.
class bias {
 public:
  explicit bias(std::mt19937_64& chance)
      : what_(static_cast<avoided>(chance() % 4)),
        starved_(static_cast<int>(chance() % ranks_max)) {}

  bool is_against(const action& a, const state& s) const {
    const bool is_message = a.what == action::kind::deliver;
    switch (what_) {
      case avoided::nothing:
        return false;
      case avoided::messages:
        return is_message;
      case avoided::instructions:
        return !is_message;
      case avoided::rank:
        return (is_message ? a.to : s.thread[a.thread].rank) == starved_;
    }
    return false;
  }

 private:
  enum class avoided { nothing, messages, instructions, rank };
  avoided what_;
  int starved_;
};

}  // namespace

std::string random_walk(const program& p, std::uint64_t seed, std::optional<rule> broken,
                        totals& sum, std::string* log) {
  std::mt19937_64 chance(seed);
  const auto m = make_machine(p, broken);
  m->log = log;
  m->start();
  const bias bias_of_walk(chance);
  std::vector<action> actions;
  try {
    for (unsigned long steps = 0;; ++steps) {
      m->list_actions(actions);
      if (actions.empty()) break;
      check(steps <= steps_max, "no end in sight: a livelock");
      auto pick = [&] { return actions[chance() % actions.size()]; };
      action next = pick();
      for (int retries = 0; retries < 3 && bias_of_walk.is_against(next, m->s); ++retries)
        next = pick();
      m->act(next);
      ++sum.steps;
    }
    m->check_end();
  } catch (const failure& f) {
    return f.what;
  }
  const machine::counts& counted = m->counted();
  sum.messages += counted.messages;
  sum.faults += counted.faults;
  sum.diffs_made += counted.diffs_made;
  sum.diffs_applied += counted.diffs_applied;
  return "";
}

namespace {

/// Stands for a state. Its 128 bits make it unlikely that two of some millions of states share one.
struct fingerprint {
  std::uint64_t a, b;
  bool operator==(const fingerprint&) const = default;
};
struct fingerprint_hash {
  std::size_t operator()(const fingerprint& f) const { return f.a; }
};
fingerprint fingerprint_of(const state& s) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&s);
  fingerprint f{0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
  for (std::size_t at = 0; at < sizeof s; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, sizeof s - at));
    f.a = (f.a ^ word) * 0xff51afd7ed558ccdu;
    f.a ^= f.a >> 32;
    f.b = (f.b + word) * 0xc4ceb9fe1a85ec53u;
    f.b ^= f.b >> 29;
  }
  return f;
}

/// A depth-first search. It keeps the states on the way from the first state to the one that it has
/// reached, and of all others only fingerprints.
class search {
 public:
  search(const program& p, std::size_t states_max, std::optional<rule> broken, totals& sum)
      : m_(make_machine(p, broken)), states_max_(states_max), sum_(sum) {}

  /// Throws failure.
  void run() {
    m_->start();
    enter(fingerprint_of(m_->s));
    while (!way_.empty()) {
      step& last = way_.back();
      if (last.next == last.actions.size()) {
        leave();
        continue;
      }
      m_->s = last.reached;
      m_->act(last.actions[last.next++]);
      ++sum_.steps;
      const fingerprint f = fingerprint_of(m_->s);
      check(!on_way_.contains(f), "a state comes again: a livelock");
      if (seen_.contains(f)) continue;
      enter(f);
      if (seen_.size() <= states_max_) continue;
      ++sum_.cut_short;
      break;
    }
    sum_.states += seen_.size();
  }

 private:
  struct step {
    state reached;
    fingerprint of_reached;
    std::vector<action> actions;
    std::size_t next;
  };

  /// Goes on from the state that the machine is in.
  void enter(const fingerprint& f) {
    seen_.insert(f);
    on_way_.insert(f);
    way_.push_back({m_->s, f, {}, 0});
    m_->list_actions(way_.back().actions);
  }
  /// Goes back from the state that was reached last, behind which all was tried.
  void leave() {
    const step& last = way_.back();
    if (last.actions.empty()) {
      m_->s = last.reached;
      m_->check_end();
    }
    on_way_.erase(last.of_reached);
    way_.pop_back();
  }

  std::unique_ptr<machine> m_;
  std::size_t states_max_;
  totals& sum_;
  std::unordered_set<fingerprint, fingerprint_hash> seen_, on_way_;
  std::vector<step> way_;
};

}  // namespace

std::string all_interleavings(const program& p, std::size_t states_max, std::optional<rule> broken,
                              totals& sum) {
  try {
    search(p, states_max, broken, sum).run();
  } catch (const failure& f) {
    return f.what;
  }
  return "";
}

}  // namespace page_model
