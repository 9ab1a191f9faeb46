// SPDX-License-Identifier: Apache-2.0
// Random programs. Those without races keep to this: a variable is either guarded by one lock in
// the whole program, or between two barriers it is guarded by one lock, belongs to one thread that
// takes part in barriers, or is only loaded from.
#include <optional>
#include <random>

#include "program.hpp"

namespace page_model {
namespace {

struct sizes {
  int ranks_max, threads_per_rank_max, phases_max, steps_max;
};

class program_maker {
 public:
  program_maker(protocol how, std::uint64_t seed, const sizes& most)
      : chance_(seed * 2654435761u + static_cast<unsigned>(how)), most_(most) {
    p_.how = how;
    // Not drawn: the seeds of programs that have failed still mean the same programs.
    p_.departs_in_chain = seed % 5 < 2;
    p_.readers_count = seed % 3 == 0;
  }

  program make() {
    choose_options();
    place_threads();
    threads_move_ = likely(35);
    if (p_.how == protocol::seq && likely(70)) {
      write_racing_code();
    } else {
      write_ordered_code();
    }
    return p_;
  }

 private:
  /// Which lock, if any, guards each variable.
  using guards = std::array<std::optional<int>, variables>;
  /// What each variable is between two barriers: guarded, else of one thread, else only loaded
  /// from.
  struct phase {
    guards lock_of;
    std::array<std::optional<std::size_t>, variables> thread_of;
  };

  int up_to(int n) { return static_cast<int>(chance_() % static_cast<unsigned>(n + 1)); }
  bool likely(int percent) { return static_cast<int>(chance_() % 100) < percent; }
  std::size_t threads() const { return static_cast<std::size_t>(p_.threads); }

  void choose_options() {
    p_.ranks = 2 + up_to(most_.ranks_max - 2);
    p_.collects = likely(50);
    p_.has_exclusive = likely(70);
    p_.has_fair_locks = likely(30);
    p_.pages_stick = likely(40);
    p_.answers_with_pages = likely(30);
    p_.pages_are_claimed = likely(50);
  }
  /// The first thread of each rank takes part in barriers.
  void place_threads() {
    p_.threads = 0;
    for (int r = 0; r < p_.ranks; ++r) {
      const int here = 1 + up_to(most_.threads_per_rank_max - 1);
      for (int i = 0; i < here && p_.threads < threads_max; ++i) {
        const std::size_t t = threads();
        ++p_.threads;
        p_.rank[t] = r;
        p_.meets[t] = i == 0 || likely(60);
      }
    }
  }

  void access(instructions& code, int variable) {
    using enum operation;
    constexpr std::array choices{increment, flip, increment, flip, store, load, load};
    const operation what = choices[chance_() % choices.size()];
    code.push_back({what, variable, what == store ? up_to(2) : 0});
  }
  void perhaps_move(instructions& code) {
    if (threads_move_ && likely(25)) code.push_back({operation::move, up_to(p_.ranks - 1)});
  }
  void guarded_section(instructions& code, const guards& lock_of) {
    const int lock = up_to(locks - 1);
    std::vector<int> guarded;
    for (std::size_t v = 0; v < variables; ++v) {
      if (lock_of[v] == lock) guarded.push_back(static_cast<int>(v));
    }
    code.push_back({operation::lock, lock});
    for (int n = up_to(2); n > 0 && !guarded.empty(); --n)
      access(code, guarded[chance_() % guarded.size()]);
    code.push_back({operation::unlock, lock});
  }

  void write_racing_code() {
    for (std::size_t t = 0; t < threads(); ++t) {
      instructions& code = p_.code[t];
      for (int n = 1 + up_to(most_.steps_max * 2); n > 0; --n) {
        if (likely(25)) {
          const int one = up_to(variables - 1);
          const int other = (one + 1 + up_to(variables - 2)) % variables;
          code.push_back({operation::increment_two, one, other});
        } else {
          access(code, up_to(variables - 1));
        }
      }
    }
  }

  void write_ordered_code() {
    guards always;
    for (auto& lock : always) {
      if (likely(45)) lock = up_to(locks - 1);
    }
    for (int phases = 1 + up_to(most_.phases_max - 1); phases > 0; --phases) {
      const phase now = choose_phase(always);
      for (std::size_t t = 0; t < threads(); ++t) write_phase(t, now, always);
    }
    for (std::size_t t = 0; t < threads(); ++t) {
      if (p_.meets[t]) load_everything(p_.code[t], always);
    }
  }
  phase choose_phase(const guards& always) {
    phase now{always, {}};
    for (std::size_t v = 0; v < variables; ++v) {
      if (always[v]) continue;
      const auto t = static_cast<std::size_t>(up_to(p_.threads - 1));
      const bool is_only_loaded = likely(20) || !p_.meets[t];
      if (!is_only_loaded) now.thread_of[v] = t;
      if (likely(20)) now.lock_of[v] = up_to(locks - 1);
    }
    return now;
  }
  void write_phase(std::size_t t, const phase& now, const guards& always) {
    instructions& code = p_.code[t];
    const bool meets = p_.meets[t];
    for (int n = up_to(most_.steps_max); n > 0; --n) {
      perhaps_move(code);
      if (!meets || likely(40)) {
        guarded_section(code, meets ? now.lock_of : always);
        continue;
      }
      const int variable = up_to(variables - 1);
      const auto v = static_cast<std::size_t>(variable);
      if (now.lock_of[v]) continue;
      if (now.thread_of[v] == t) {
        access(code, variable);
      } else if (!now.thread_of[v]) {
        code.push_back({operation::load, variable});
      }
    }
    perhaps_move(code);
    if (meets) code.push_back({operation::barrier});
  }
  static void load_everything(instructions& code, const guards& always) {
    for (int v = 0; v < variables; ++v) {
      const std::optional<int> lock = always[static_cast<std::size_t>(v)];
      if (lock) code.push_back({operation::lock, *lock});
      code.push_back({operation::load, v});
      if (lock) code.push_back({operation::unlock, *lock});
    }
  }

  std::mt19937_64 chance_;
  sizes most_;
  bool threads_move_ = false;
  program p_;
};

}  // namespace

program random_program(protocol how, std::uint64_t seed) {
  program p = program_maker(how, seed, {3, 2, 3, 4}).make();
  if (seed % 4 == 3) p.barriers_a_collection = 3;
  return p;
}

program small_program(protocol how, std::uint64_t seed) {
  const int ranks = seed % 4 == 0 ? 3 : 2;
  const int steps = seed % 3 == 0 ? 2 : 1;
  return program_maker(how, seed, {ranks, 2, 2, steps}).make();
}

}  // namespace page_model
