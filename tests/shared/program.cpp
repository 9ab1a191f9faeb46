// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <random>

namespace simulated {

using sojourn::detail::pages::protocol_kinds;

namespace {

class maker {
 public:
  maker(std::uint64_t seed, const program_sizes& sizes) : chance_(seed), sizes_(sizes) {
    p_.seed = seed;
  }

  program make() {
    p_.ranks = sizes_.ranks > 1 ? 2 + up_to(sizes_.ranks - 2) : 1;
    p_.pages = sizes_.pages;
    p_.variables_of_page = sizes_.variables_of_page;
    for (int g = 0; g < p_.pages; ++g)
      p_.protocols.push_back(
          sizes_.protocol.value_or(static_cast<protocol_kind>(up_to(protocol_kinds - 1))));
    p_.exclusive = likely(70);
    p_.sticking = likely(40);
    p_.report = sizes_.report != 0;
    p_.claims = likely(50);
    p_.whole_pages = likely(30);
    // Else no diffs are longer than a page.
    if (p_.whole_pages && likely(50))
      p_.variable_bytes = 4000 / static_cast<std::size_t>(p_.variables_of_page);
    p_.fair = likely(30);
    p_.fetched_together = likely(50) ? 1 : 1 + up_to(3);
    // From a collection after nearly every interval to none.
    if (likely(50)) p_.collect_bytes = static_cast<std::size_t>(up_to(4)) * 3000;
    moves_ = likely(35);
    begin_threads();
    guarded_by_.resize(static_cast<std::size_t>(p_.variables()));
    for (int& l : guarded_by_) l = likely(45) ? up_to(sizes_.locks - 1) : by_phases;
    if (likely(70)) race();
    for (int phases = 1 + up_to(sizes_.phases - 1); phases > 0; --phases) add_phase();
    look_at_everything();
    return p_;
  }

 private:
  static constexpr int by_phases = -1;
  static constexpr int races = -3;
  static constexpr int all_read = -1;
  static constexpr int guarded = -2;

  int up_to(int n) {
    return n <= 0 ? 0 : static_cast<int>(chance_() % (static_cast<unsigned>(n) + 1));
  }
  bool likely(int percent) { return static_cast<int>(chance_() % 100) < percent; }

  void begin_threads() {
    for (int r = 0; r < p_.ranks; ++r) {
      const int count = 1 + up_to(sizes_.threads_of_rank - 1);
      for (int k = 0; k < count; ++k) p_.threads.push_back({r, k == 0 || likely(60), {}});
    }
  }

  void perhaps_move(script& t) {
    if (moves_ && likely(25))
      t.code.push_back({operation::move, static_cast<std::uint16_t>(up_to(p_.ranks - 1))});
  }
  /// On pages of `seq` variables are loaded and stored without any order.
  void race() {
    for (int v = 0; v < p_.variables(); ++v)
      if (p_.protocol_of(p_.page_of(v)) == protocol_kind::seq)
        racing_.push_back(static_cast<std::uint16_t>(v));
    for (std::uint16_t v : racing_) guarded_by_[v] = races;
  }

  std::uint16_t one_of(const std::vector<std::uint16_t>& variables) {
    return variables[chance_() % variables.size()];
  }
  /// An instruction on one or two of the variables, which are the thread's to use.
  void access(script& t, const std::vector<std::uint16_t>& variables) {
    if (variables.empty()) return;
    const std::uint16_t v = one_of(variables);
    const std::uint16_t other = one_of(variables);
    if (v == other || likely(70)) return access(t, v);
    t.code.push_back({likely(70) ? operation::both : operation::copy, v, other});
  }
  void access(script& t, std::uint16_t v) {
    constexpr operation kinds[] = {operation::increment, operation::flip,  operation::increment,
                                   operation::flip,      operation::store, operation::load,
                                   operation::load};
    const operation what = kinds[chance_() % 7];
    t.code.push_back(
        {what, v, static_cast<std::uint16_t>(what == operation::store ? up_to(2) : 0)});
  }
  void guarded_section(script& t, const std::vector<int>& lock_of) {
    const int l = up_to(sizes_.locks - 1);
    std::vector<std::uint16_t> of;
    for (std::size_t v = 0; v < lock_of.size(); ++v)
      if (lock_of[v] == l) of.push_back(static_cast<std::uint16_t>(v));
    t.code.push_back({operation::lock, static_cast<std::uint16_t>(l)});
    for (int n = up_to(2); n > 0; --n) access(t, of);
    t.code.push_back({operation::unlock, static_cast<std::uint16_t>(l)});
  }

  /// Until the next barrier each variable is one thread's, or nobody stores to it, or a lock guards
  /// it.
  void add_phase() {
    std::vector<int> owner(guarded_by_.size(), guarded);
    std::vector<int> lock_of = guarded_by_;
    for (std::size_t v = 0; v < owner.size(); ++v) {
      if (guarded_by_[v] != by_phases) continue;
      const int t = up_to(static_cast<int>(p_.threads.size()) - 1);
      owner[v] = likely(20) || !p_.threads[static_cast<std::size_t>(t)].meets ? all_read : t;
      if (likely(20)) {
        owner[v] = guarded;
        lock_of[v] = up_to(sizes_.locks - 1);
      }
    }
    for (std::size_t i = 0; i < p_.threads.size(); ++i) {
      script& t = p_.threads[i];
      std::vector<std::uint16_t> own;
      for (std::size_t v = 0; v < owner.size(); ++v)
        if (owner[v] == static_cast<int>(i)) own.push_back(static_cast<std::uint16_t>(v));
      for (int n = up_to(sizes_.steps); n > 0; --n) {
        perhaps_move(t);
        if (!racing_.empty() && likely(50)) {
          access(t, racing_);
          continue;
        }
        if (!t.meets || likely(40)) {
          guarded_section(t, t.meets ? lock_of : guarded_by_);
          continue;
        }
        const auto v = static_cast<std::size_t>(up_to(p_.variables() - 1));
        if (owner[v] == static_cast<int>(i))
          access(t, own);
        else if (owner[v] == all_read)
          t.code.push_back({operation::load, static_cast<std::uint16_t>(v)});
      }
      perhaps_move(t);
      if (t.meets) t.code.push_back({operation::barrier});
    }
  }

  void look_at_everything() {
    for (script& t : p_.threads) {
      if (!t.meets) continue;
      for (std::size_t v = 0; v < guarded_by_.size(); ++v) {
        const auto l = static_cast<std::uint16_t>(guarded_by_[v]);
        if (guarded_by_[v] >= 0) t.code.push_back({operation::lock, l});
        t.code.push_back({operation::load, static_cast<std::uint16_t>(v)});
        if (guarded_by_[v] >= 0) t.code.push_back({operation::unlock, l});
      }
    }
  }

  std::mt19937_64 chance_;
  const program_sizes& sizes_;
  program p_;
  bool moves_ = false;
  std::vector<int> guarded_by_;
  std::vector<std::uint16_t> racing_;
};

}  // namespace

const char* name_of(protocol_kind kind) {
  const char* const names[] = {"lmw", "lsw", "seq"};
  return names[static_cast<std::size_t>(kind)];
}

program random_program(std::uint64_t seed, const program_sizes& sizes) {
  return maker(seed, sizes).make();
}

std::string text_of(const program& p) {
  const char* const names[] = {"load", "store", "inc",    "flip",    "both",
                               "copy", "lock",  "unlock", "barrier", "move"};
  std::string out = "program " + std::to_string(p.seed) + ": " + std::to_string(p.ranks) +
                    " ranks, " + std::to_string(p.fetched_together) + " pages a fault";
  for (protocol_kind kind : p.protocols) out += std::string(", ") + name_of(kind);
  if (p.exclusive) out += ", exclusive pages";
  if (p.sticking) out += ", pages stick";
  if (p.claims) out += ", pages are claimed";
  if (p.whole_pages) out += ", whole pages";
  if (p.fair) out += ", fair locks";
  if (p.collect_bytes != SIZE_MAX)
    out += ", collects from " + std::to_string(p.collect_bytes) + " bytes";
  out += ", variables of " + std::to_string(p.variable_bytes) + " bytes\n";
  for (std::size_t i = 0; i < p.threads.size(); ++i) {
    const script& t = p.threads[i];
    out += "  thread " + std::to_string(i) + " on rank " + std::to_string(t.rank) +
           (t.meets ? ":" : ", not in barriers:");
    for (const instruction& n : t.code) {
      out += std::string(" ") + names[static_cast<int>(n.what)];
      if (n.what != operation::barrier) out += std::to_string(n.variable);
      if (n.what == operation::both || n.what == operation::copy)
        out += "," + std::to_string(n.other);
      if (n.what == operation::store) out += "=" + std::to_string(n.other);
    }
    out += "\n";
  }
  return out;
}

}  // namespace simulated
