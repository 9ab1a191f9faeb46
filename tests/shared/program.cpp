// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <random>
#include <utility>

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
    p_.fan_out = 1 + static_cast<int>(p_.seed % 3);
    p_.pins = sizes_.pins != 0;
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
    pins_of_.resize(p_.threads.size());
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
      for (int k = 0; k < count; ++k)
        p_.threads.push_back({.rank = r, .meets = k == 0 || likely(60), .code = {}});
    }
  }

  void perhaps_move(script& t) {
    // What has pinned pages stays where they are.
    const auto i = static_cast<std::size_t>(&t - p_.threads.data());
    if (moves_ && pins_.empty() && pins_of_[i].empty() && likely(25))
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
    if (sizes_.pins != 0 && likely(25)) pinned_section(t, of);
    system_goes_on(t, of);
    t.code.push_back({operation::unlock, static_cast<std::uint16_t>(l)});
  }

  /// What the thread may use now is used by the system. Under `lmw` other ranks do not wait for
  /// pages that are pinned, so such pins may last over waits, until `end_pins`.
  void pinned_section(script& t, const std::vector<std::uint16_t>& variables) {
    if (variables.empty() || pins_.size() > 2) return;
    std::uint16_t first = one_of(variables);
    std::uint16_t last = likely(40) ? one_of(variables) : first;
    if (p_.page_of(first) > p_.page_of(last)) std::swap(first, last);
    bool stays = true;
    for (int g = p_.page_of(first); g <= p_.page_of(last); ++g)
      stays = stays && p_.protocol_of(g) == protocol_kind::lmw;
    // Others would wait for what this thread has, and it for them.
    if (!stays && !pins_.empty()) end_pins(t);
    const bool stores = likely(60);
    t.code.push_back({operation::pin, first, last, 0, stores});
    for (int n = up_to(3); n > 0; --n) {
      const std::uint16_t v = likely(50) ? first : last;
      const bool store = stores && likely(60);
      t.code.push_back({store ? operation::system_store : operation::system_load, v,
                        static_cast<std::uint16_t>(up_to(2))});
      if (stays && likely(30)) access(t, v);
    }
    pins_.push_back({first, last, stores});
    if (!stays || likely(40)) end_pins(t);
  }
  void end_pins(script& t) {
    if (!pins_.empty()) t.code.push_back({operation::unpin});
    pins_.clear();
  }
  /// Between two phases.
  void end_pins_of(std::size_t thread) {
    pins_ = std::move(pins_of_[thread]);
    end_pins(p_.threads[thread]);
  }
  /// The system goes on with what was pinned before.
  void system_goes_on(script& t, const std::vector<std::uint16_t>& variables) {
    for (const pinned_pages& p : pins_)
      for (std::uint16_t v : variables) {
        if (p_.page_of(v) < p_.page_of(p.first) || p_.page_of(v) > p_.page_of(p.last)) continue;
        const bool store = p.stores && likely(50);
        t.code.push_back({store ? operation::system_store : operation::system_load, v,
                          static_cast<std::uint16_t>(up_to(2))});
      }
  }

  /// Until the next barrier each variable is one thread's, or nobody stores to it, or a lock guards
  /// it.
  void add_phase() {
    std::vector<int> owner(guarded_by_.size(), guarded);
    std::vector<int> lock_of = guarded_by_;
    for (std::size_t v = 0; v < owner.size(); ++v) {
      if (guarded_by_[v] != by_phases) continue;
      const int t = up_to(static_cast<int>(p_.threads.size()) - 1);
      const script& of = p_.threads[static_cast<std::size_t>(t)];
      owner[v] = likely(20) || !of.meets || of.is_gone ? all_read : t;
      if (likely(20)) {
        owner[v] = guarded;
        lock_of[v] = up_to(sizes_.locks - 1);
      }
    }
    for (std::size_t i = 0; i < p_.threads.size(); ++i) {
      script& t = p_.threads[i];
      pins_ = std::move(pins_of_[i]);
      if (t.is_gone) continue;
      std::vector<std::uint16_t> own;
      for (std::size_t v = 0; v < owner.size(); ++v)
        if (owner[v] == static_cast<int>(i)) own.push_back(static_cast<std::uint16_t>(v));
      for (int n = up_to(sizes_.steps); n > 0; --n) {
        perhaps_move(t);
        if (sizes_.pins != 0 && t.meets && likely(25)) pinned_section(t, own);
        system_goes_on(t, own);
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
      if (sizes_.pins != 0 && (!t.meets || likely(50))) end_pins(t);
      perhaps_move(t);
      pins_of_[i] = std::exchange(pins_, {});
    }
    if (sizes_.events != 0) add_events(owner, lock_of);
    for (script& t : p_.threads)
      if (t.meets && !t.is_gone) t.code.push_back({operation::barrier});
    if (sizes_.events != 0) perhaps_end();
  }

  // --- What orders besides locks and barriers. It is appended to the threads' code in one order of
  // the whole job, so whatever a thread waits for comes earlier in it, and no thread waits for
  // ever.

  using numbers = std::vector<int>;
  static constexpr int nobody = -4;  ///< Owns what was handed to all.

  /// Those that take part in barriers, `most` of them at random.
  numbers some_threads(std::size_t most) {
    numbers all;
    for (std::size_t i = 0; i < p_.threads.size(); ++i)
      if (p_.threads[i].meets && !p_.threads[i].is_gone) all.push_back(static_cast<int>(i));
    std::shuffle(all.begin(), all.end(), chance_);
    if (all.size() > most) all.resize(most);
    return all;
  }
  script& thread_of(int i) { return p_.threads[static_cast<std::size_t>(i)]; }
  static std::vector<std::uint16_t> owned_by(const numbers& owner, int thread) {
    std::vector<std::uint16_t> all;
    for (std::size_t v = 0; v < owner.size(); ++v)
      if (owner[v] == thread) all.push_back(static_cast<std::uint16_t>(v));
    return all;
  }
  void access_own(int thread, const numbers& owner) {
    perhaps_move(thread_of(thread));
    for (int n = up_to(2); n > 0; --n) access(thread_of(thread), owned_by(owner, thread));
    perhaps_move(thread_of(thread));
  }
  void add(int thread, operation what, int object, std::size_t other = 0, std::size_t skips = 0) {
    thread_of(thread).code.push_back({what, static_cast<std::uint16_t>(object),
                                      static_cast<std::uint16_t>(other),
                                      static_cast<std::uint16_t>(skips)});
  }
  int new_object() { return p_.objects++; }

  void add_events(numbers& owner, const numbers& lock_of) {
    for (int n = up_to(sizes_.events); n > 0; --n) {
      switch (up_to(5)) {
        case 0:
          hand_over(owner);
          break;
        case 1:
          hand_to_all(owner);
          break;
        case 2:
          collect(owner);
          break;
        case 3:
          meet(owner);
          break;
        case 4:
          wait_for_condition(lock_of);
          break;
        default:
          create(owner);
          break;
      }
    }
  }
  /// There, back and there again; each way has its flag.
  void hand_over(numbers& owner) {
    const numbers two = some_threads(2);
    if (two.size() < 2) return;
    const int flags[] = {new_object(), new_object()};
    const int times = 1 + up_to(2);
    for (int k = 0; k < times; ++k) {
      const int flag = flags[k % 2];
      const int from = two[static_cast<std::size_t>(k % 2)];
      const int to = two[static_cast<std::size_t>((k + 1) % 2)];
      access_own(from, owner);
      add(from, operation::set, flag);
      for (std::uint16_t v : owned_by(owner, from))
        if (likely(70)) owner[v] = to;
      add(to, operation::await, flag);
      add(to, operation::clear, flag);
      access_own(to, owner);
    }
  }
  void hand_to_all(numbers& owner) {
    const numbers all = some_threads(4);
    const int flag = new_object();
    access_own(all[0], owner);
    add(all[0], operation::set, flag);
    const auto variables = owned_by(owner, all[0]);
    for (std::uint16_t v : variables) owner[v] = nobody;
    for (std::size_t i = 1; i < all.size(); ++i) {
      add(all[i], operation::await, flag);
      if (!variables.empty())
        thread_of(all[i]).code.push_back({operation::load, one_of(variables)});
    }
  }
  /// The last one to come sees what all have done.
  void collect(numbers& owner) {
    const numbers all = some_threads(4);
    const int atomic = new_object();
    std::vector<std::uint16_t> variables;
    for (int t : all) {
      access_own(t, owner);
      for (std::uint16_t v : owned_by(owner, t)) variables.push_back(v);
    }
    for (std::uint16_t v : variables) owner[v] = nobody;
    for (int t : all) {
      add(t, operation::add, atomic, all.size(), variables.size() + 1);
      for (std::uint16_t v : variables) thread_of(t).code.push_back({operation::load, v});
      add(t, operation::take, atomic, all.size());
    }
  }
  void meet(numbers& owner) {
    const numbers all = some_threads(4);
    const int barrier = new_object();
    for (int rounds = 1 + up_to(1); rounds > 0; --rounds) {
      for (int t : all) {
        access_own(t, owner);
        add(t, operation::arrive, barrier, all.size());
      }
      for (int t : all)
        for (std::uint16_t v : owned_by(owner, t))
          owner[v] = all[static_cast<std::size_t>(up_to(static_cast<int>(all.size()) - 1))];
      for (int t : all) access_own(t, owner);
    }
  }
  void wait_for_condition(const numbers& lock_of) {
    const numbers all = some_threads(3);
    const int condition = new_object();
    const auto l = static_cast<std::uint16_t>(up_to(sizes_.locks - 1));
    std::vector<std::uint16_t> guarded_by_it;
    for (std::size_t v = 0; v < lock_of.size(); ++v)
      if (lock_of[v] == l) guarded_by_it.push_back(static_cast<std::uint16_t>(v));
    const operation notify =
        all.size() == 2 && likely(70) ? operation::notify_one : operation::notify_all;
    const bool notifies_outside = likely(30);
    for (std::size_t i = 0; i < all.size(); ++i) {
      script& t = thread_of(all[i]);
      perhaps_move(t);
      t.code.push_back({operation::lock, l});
      if (i != 0) add(all[i], operation::wait, condition, l);
      access(t, guarded_by_it);
      if (i == 0) add(all[i], operation::prepare, condition);
      if (i == 0 && !notifies_outside) add(all[i], notify, condition);
      t.code.push_back({operation::unlock, l});
      if (i == 0 && notifies_outside) add(all[i], notify, condition);
    }
  }
  void create(numbers& owner) {
    if (p_.threads.size() >= 12) return;
    const int by = some_threads(1)[0];
    const auto made = static_cast<int>(p_.threads.size());
    p_.threads.push_back({.rank = up_to(p_.ranks - 1), .is_created = true, .code = {}});
    pins_of_.emplace_back();
    access_own(by, owner);
    add(by, operation::create, made);
    thread_of(made).code.push_back({operation::here});
    for (std::uint16_t v : owned_by(owner, by))
      if (likely(50)) owner[v] = made;
    access_own(made, owner);
  }
  void perhaps_end() {
    for (std::size_t i = 0; i < p_.threads.size(); ++i) {
      script& t = p_.threads[i];
      if (!t.meets || t.is_gone || !t.is_created || !likely(30)) continue;
      end_pins_of(i);
      t.is_gone = true;
      t.code.push_back({operation::move, static_cast<std::uint16_t>(t.rank)});
      t.code.push_back({operation::gone});
    }
  }

  void look_at_everything() {
    for (std::size_t i = 0; i < p_.threads.size(); ++i) {
      script& t = p_.threads[i];
      if (t.is_gone) continue;
      end_pins_of(i);
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
  struct pinned_pages {
    std::uint16_t first;
    std::uint16_t last;
    bool stores;
  };
  std::vector<pinned_pages> pins_;                  ///< Of the thread whose code is being made.
  std::vector<std::vector<pinned_pages>> pins_of_;  ///< Of each thread, between two phases.
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

program lock_only_program(protocol_kind kind, std::uint64_t rounds) {
  program p;
  p.ranks = 3;
  p.protocols.assign(static_cast<std::size_t>(p.pages), kind);
  p.collect_bytes = std::size_t{256} << 10;
  p.rounds = rounds;
  for (int r = 0; r < p.ranks; ++r) {
    script t{.rank = r, .meets = false, .code = {}};
    for (std::uint16_t l = 0; l < 2; ++l) {
      t.code.push_back({operation::lock, l});
      t.code.push_back({operation::increment, static_cast<std::uint16_t>(2 * l)});
      t.code.push_back({operation::unlock, l});
    }
    p.threads.push_back(t);
  }
  return p;
}

program barrier_program(int ranks, int barriers) {
  program p;
  p.ranks = p.pages = ranks;
  p.variables_of_page = 1;
  p.exclusive = false;  // stores to exclusive pages are not told
  p.protocols.assign(static_cast<std::size_t>(p.pages), protocol_kind::lmw);
  for (int r = 0; r < ranks; ++r) {
    script t{.rank = r, .code = {}};
    for (int n = 0; n < barriers; ++n) {
      t.code.push_back({operation::increment, static_cast<std::uint16_t>(r)});
      t.code.push_back({operation::barrier});
    }
    p.threads.push_back(t);
  }
  return p;
}

std::string text_of(const program& p) {
  const char* const names[] = {
      "load",         "store",      "inc",    "flip",    "both", "copy",   "system_load",
      "system_store", "lock",       "unlock", "barrier", "move", "pin",    "unpin",
      "set",          "clear",      "await",  "add",     "take", "arrive", "prepare",
      "notify_one",   "notify_all", "wait",   "create",  "here", "gone"};
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
  out += ", departures go on to " + std::to_string(p.fan_out) + " ranks";
  out += ", variables of " + std::to_string(p.variable_bytes) + " bytes\n";
  for (std::size_t i = 0; i < p.threads.size(); ++i) {
    const script& t = p.threads[i];
    out += "  thread " + std::to_string(i) + " on rank " + std::to_string(t.rank) +
           (t.is_created ? ", created" : "") + (t.meets ? ":" : ", not in barriers:");
    for (const instruction& n : t.code) {
      out += std::string(" ") + names[static_cast<int>(n.what)];
      if (n.what != operation::barrier && n.what != operation::unpin)
        out += std::to_string(n.variable);
      if (n.what == operation::both || n.what == operation::copy ||
          (n.what >= operation::add && n.other != 0))
        out += "," + std::to_string(n.other);
      if (n.what == operation::store || n.what == operation::system_store)
        out += "=" + std::to_string(n.other);
      if (n.what == operation::pin)
        out += "-" + std::to_string(n.other) + (n.stores ? "(stores)" : "(loads)");
    }
    out += "\n";
  }
  return out;
}

}  // namespace simulated
