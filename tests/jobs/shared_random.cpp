// SPDX-License-Identifier: Apache-2.0
// Random programs on shared memory: threads of all ranks load, store, lock and meet at barriers.
// What a thread does between two locks runs there, or as a call on another rank, or in an
// activation that moves there and back; and what is copied may go through a pipe. All ranks make
// the same program from its seed. It has no data races, and each section under a lock notes its
// turn, so afterwards every rank runs the program again, in one thread on memory of its own, and
// knows what each load must have seen.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sojourn/sojourn.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;
using u64 = std::uint64_t;

constexpr std::size_t page = 4096;

enum class operation { load, store, increment, flip, copy, copy_by_system };
enum class place { here, called, moved };

/// Where a variable lies. It may begin at any byte, and lie on two pages.
struct variable {
  std::size_t block;
  std::size_t offset;
  std::size_t bytes;
};

struct instruction {
  operation what;
  std::size_t variable;
  std::size_t other;  ///< That a copy stores to.
  unsigned char value;
  std::size_t seen;  ///< Where the thread notes what it has loaded.
};

/// What a thread does without a lock, or while it holds one.
struct section {
  int lock;  ///< Or `unlocked`.
  place where;
  rank_t rank;  ///< Unless it is here.
  std::size_t number;
  std::vector<instruction> code;
};
constexpr int unlocked = -1;

struct block {
  shared::protocol how;
  rank_t allocated_on;
  std::size_t bytes;
};

struct program {
  int threads_of_rank;
  int locks;
  std::size_t sections = 0;
  std::vector<block> blocks;
  std::vector<variable> variables;
  /// By phase and thread. Between two phases is a barrier.
  std::vector<std::vector<std::vector<section>>> phases;
  std::vector<std::size_t> loads;  ///< Of each thread.
};

class maker {
 public:
  explicit maker(u64 seed) : chance_(seed) {}

  program make() {
    p_.threads_of_rank = 1 + up_to(3);
    p_.locks = 1 + up_to(3);
    threads_ = p_.threads_of_rank * rank_count();
    p_.loads.resize(static_cast<std::size_t>(threads_));
    add_blocks();
    for (int phases = 1 + up_to(4); phases > 0; --phases) add_phase();
    return p_;
  }

 private:
  static constexpr int all_load = -1;
  static constexpr int guarded = -2;

  int up_to(int n) { return static_cast<int>(chance_() % (static_cast<unsigned>(n) + 1)); }
  bool likely(int percent) { return up_to(99) < percent; }

  void add_blocks() {
    constexpr shared::protocol all[] = {shared::protocol::lmw, shared::protocol::lsw,
                                        shared::protocol::seq};
    const bool mixed = likely(40);
    const int first = up_to(2);
    for (int n = 1 + up_to(2); n > 0; --n) {
      const auto pages = static_cast<std::size_t>(1 + up_to(3));
      const shared::protocol how = all[mixed ? up_to(2) : first];
      p_.blocks.push_back({how, up_to(rank_count() - 1), pages * page});
      add_variables(p_.blocks.size() - 1);
    }
  }

  /// They are neighbours, and some lie on two pages.
  void add_variables(std::size_t of) {
    const std::size_t end = p_.blocks[of].bytes;
    for (std::size_t begins = 0; begins < end; begins += page) {
      std::size_t at = begins + static_cast<std::size_t>(up_to(40));
      if (!p_.variables.empty() && p_.variables.back().block == of)
        at = std::max(at, p_.variables.back().offset + p_.variables.back().bytes);
      for (int n = 1 + up_to(5); n > 0; --n) at = add_variable(of, at);
      if (begins + page < end && likely(70))
        (void)add_variable(of, begins + page - 1 - static_cast<std::size_t>(up_to(14)));
    }
  }
  std::size_t add_variable(std::size_t of, std::size_t at) {
    constexpr std::size_t sizes[] = {1, 1, 2, 4, 8, 16, 300};
    p_.variables.push_back({of, at, sizes[up_to(6)]});
    return at + p_.variables.back().bytes;
  }

  /// In a phase each variable is one thread's, or nobody stores to it, or a lock guards it.
  void add_phase() {
    std::vector<int> owner;
    for (std::size_t v = 0; v < p_.variables.size(); ++v)
      owner.push_back(likely(25)   ? all_load
                      : likely(45) ? guarded - up_to(p_.locks - 1)
                                   : up_to(threads_ - 1));
    p_.phases.emplace_back();
    for (int t = 0; t < threads_; ++t) {
      p_.phases.back().emplace_back();
      for (int n = up_to(5); n > 0; --n) {
        const int lock = likely(50) ? up_to(p_.locks - 1) : unlocked;
        add_section(t, lock, owner);
      }
    }
  }

  void add_section(int thread, int lock, const std::vector<int>& owner) {
    std::vector<std::size_t> to_load;
    std::vector<std::size_t> to_store;
    for (std::size_t v = 0; v < owner.size(); ++v) {
      const bool own = lock == unlocked ? owner[v] == thread : owner[v] == guarded - lock;
      if (own) to_store.push_back(v);
      if (own || owner[v] == all_load) to_load.push_back(v);
    }
    const place where = likely(70) ? place::here : likely(60) ? place::called : place::moved;
    section s{lock, where, up_to(rank_count() - 1), p_.sections++, {}};
    for (int n = up_to(4); n > 0; --n) {
      const bool stores = !to_store.empty() && likely(65);
      const std::vector<std::size_t>& from = stores ? to_store : to_load;
      if (from.empty()) continue;
      constexpr operation changes[] = {operation::store, operation::increment, operation::flip,
                                       operation::copy, operation::copy_by_system};
      instruction i{stores ? changes[up_to(4)] : operation::load, one_of(from), 0,
                    static_cast<unsigned char>(up_to(3)), 0};
      if (i.what == operation::copy || i.what == operation::copy_by_system) {
        i.other = i.variable;
        i.variable = one_of(to_load);
      }
      if (i.what == operation::load) i.seen = p_.loads[static_cast<std::size_t>(thread)]++;
      s.code.push_back(i);
    }
    p_.phases.back()[static_cast<std::size_t>(thread)].push_back(s);
  }
  std::size_t one_of(const std::vector<std::size_t>& all) { return all[chance_() % all.size()]; }

  std::mt19937_64 chance_;
  program p_{};
  int threads_ = 0;
};

// --- Instructions, on shared memory and on a rank's own

// Numbers that need not be aligned: one instruction changes both pages that such a one lies on.
struct bytes1 {
  std::uint8_t value;
};
struct [[gnu::packed, gnu::may_alias]] bytes2 {
  std::uint16_t value;
};
struct [[gnu::packed, gnu::may_alias]] bytes4 {
  std::uint32_t value;
};
struct [[gnu::packed, gnu::may_alias]] bytes8 {
  u64 value;
};
struct [[gnu::packed, gnu::may_alias]] bytes16 {
  using vector [[gnu::vector_size(16)]] = u64;
  vector value;
};

template <class T>
[[gnu::noinline]] void change(operation what, std::byte* at, unsigned char by) {
  T* p = reinterpret_cast<T*>(at);
  if (what == operation::increment)
    p->value = static_cast<decltype(p->value)>(p->value + 1);
  else
    p->value = static_cast<decltype(p->value)>(p->value ^ by);
}

/// A number that tells what the bytes are, in this order.
[[gnu::noinline]] u64 sum(const std::byte* at, std::size_t bytes) {
  std::array<unsigned char, 300> copy;
  std::memcpy(copy.data(), at, bytes);
  u64 all = 0;
  for (std::size_t i = 0; i < bytes; ++i) all = all * 31 + copy[i];
  return all;
}

using memory_blocks = std::vector<std::byte*>;

void execute(const program& p, const instruction& i, const memory_blocks& at,
             std::vector<u64>& seen) {
  const variable& v = p.variables[i.variable];
  std::byte* here = at[v.block] + v.offset;
  switch (i.what) {
    case operation::load:
      seen[i.seen] = sum(here, v.bytes);
      break;
    case operation::store:
      std::memset(here, i.value, v.bytes);
      break;
    case operation::copy: {
      const variable& to = p.variables[i.other];
      std::memmove(at[to.block] + to.offset, here, std::min(v.bytes, to.bytes));
      break;
    }
    case operation::copy_by_system: {
      const variable& to = p.variables[i.other];
      const std::size_t bytes = std::min(v.bytes, to.bytes);
      std::array<int, 2> ends{};
      CHECK_EQUAL(pipe(ends.data()), 0);
      CHECK_EQUAL(shared::write(ends[1], here, bytes), static_cast<ssize_t>(bytes));
      CHECK_EQUAL(shared::read(ends[0], at[to.block] + to.offset, bytes),
                  static_cast<ssize_t>(bytes));
      close(ends[0]);
      close(ends[1]);
      break;
    }
    case operation::increment:
    case operation::flip:
      switch (v.bytes) {
        case 1:
          return change<bytes1>(i.what, here, i.value);
        case 2:
          return change<bytes2>(i.what, here, i.value);
        case 4:
          return change<bytes4>(i.what, here, i.value);
        case 8:
          return change<bytes8>(i.what, here, i.value);
        case 16:
          return change<bytes16>(i.what, here, i.value);
        default:
          for (std::size_t b = 0; b < v.bytes; ++b) change<bytes1>(i.what, here + b, i.value);
      }
  }
}

// --- Runs of a program

/// The same address on all ranks: allocated on one.
template <class T>
T* alloc_on(rank_t rank, std::size_t count, shared::protocol how = shared::protocol::lmw) {
  std::uintptr_t at = 0;
  if (rank_me() == rank) at = reinterpret_cast<std::uintptr_t>(shared::alloc<T>(count, how));
  return reinterpret_cast<T*>(broadcast(at, rank));
}

using loads = std::vector<std::vector<u64>>;  ///< What each thread has seen.

loads no_loads(const program& p) {
  loads all;
  for (std::size_t count : p.loads) all.emplace_back(count);
  return all;
}

/// In shared memory.
struct locks_of_program {
  std::byte* mutexes;  ///< A mutex is named by its address.
  std::uint32_t* turns_taken;
  std::uint32_t* turn_of;  ///< By the section's number.
  shared::mutex& mutex(int l) const { return *reinterpret_cast<shared::mutex*>(mutexes + l); }
};

/// What a rank knows of the program that runs, for what comes from other ranks.
struct {
  const program* p = nullptr;
  const memory_blocks* at = nullptr;
} current;

constexpr std::size_t loads_of_section_max = 4;
using loads_of_section = std::array<u64, loads_of_section_max>;

/// Where a section is in the program.
struct section_place {
  std::uint32_t phase;
  std::uint32_t thread;
  std::uint32_t number;
};

/// In order of its loads.
loads_of_section execute_here(section_place where) {
  const program& p = *current.p;
  const section& s = p.phases[where.phase][where.thread][where.number];
  std::vector<u64> seen(p.loads[where.thread]);
  loads_of_section of_section{};
  std::size_t count = 0;
  for (const instruction& i : s.code) {
    execute(p, i, *current.at, seen);
    if (i.what == operation::load) of_section[count++] = seen[i.seen];
  }
  return of_section;
}

loads_of_section execute_there(section_place where, rank_t rank) {
  (void)migrate_to(rank);
  return execute_here(where);
}

void execute_elsewhere(const section& s, section_place where, std::vector<u64>& seen) {
  const loads_of_section of_section = s.where == place::called
                                          ? rpc(s.rank, execute_here, where).get()
                                          : activate(execute_there, where, s.rank);
  std::size_t count = 0;
  for (const instruction& i : s.code)
    if (i.what == operation::load) seen[i.seen] = of_section[count++];
}

void run_thread(const program& p, std::size_t thread, const memory_blocks& at,
                const locks_of_program& locks, std::vector<u64>& seen) {
  for (std::size_t phase = 0; phase < p.phases.size(); ++phase) {
    const std::vector<section>& sections = p.phases[phase][thread];
    for (std::size_t n = 0; n < sections.size(); ++n) {
      const section& s = sections[n];
      if (s.lock != unlocked) {
        locks.mutex(s.lock).lock();
        locks.turn_of[s.number] = locks.turns_taken[s.lock]++;
      }
      if (s.where == place::here)
        for (const instruction& i : s.code) execute(p, i, at, seen);
      else
        execute_elsewhere(s,
                          {static_cast<std::uint32_t>(phase), static_cast<std::uint32_t>(thread),
                           static_cast<std::uint32_t>(n)},
                          seen);
      if (s.lock != unlocked) locks.mutex(s.lock).unlock();
    }
    shared::barrier();
  }
}

loads run_in_turn(const program& p, const memory_blocks& at, const std::uint32_t* turn_of) {
  loads seen = no_loads(p);
  struct step {
    std::uint32_t turn;
    std::size_t thread;
    const section* what;
  };
  for (const auto& phase : p.phases) {
    // What is done under different locks, and without, is done with different variables.
    std::vector<step> steps;
    for (std::size_t t = 0; t < phase.size(); ++t)
      for (const section& s : phase[t])
        steps.push_back({s.lock == unlocked ? 0 : turn_of[s.number], t, &s});
    std::sort(steps.begin(), steps.end(), [](const step& a, const step& b) {
      return a.turn != b.turn ? a.turn < b.turn : a.what->number < b.what->number;
    });
    for (const step& s : steps)
      for (const instruction& i : s.what->code) execute(p, i, at, seen[s.thread]);
  }
  return seen;
}

/// SOJOURN_TEST_SEED, or else one that nobody has tried.
u64 given_seed() {
  const char* given = std::getenv("SOJOURN_TEST_SEED");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  return broadcast(u64{std::random_device()()}, 0);
}

void run_random_program(u64 seed) {
  const program p = maker(seed).make();
  memory_blocks at;
  for (const block& b : p.blocks) at.push_back(alloc_on<std::byte>(b.allocated_on, b.bytes, b.how));
  const auto count = static_cast<std::size_t>(p.locks);
  const locks_of_program locks{alloc_on<std::byte>(0, count),
                               alloc_on<std::uint32_t>(rank_count() - 1, count),
                               alloc_on<std::uint32_t>(0, p.sections + 1)};
  loads seen = no_loads(p);
  current = {&p, &at};
  shared::run_threads(p.threads_of_rank, [&](int number) {
    const auto thread = static_cast<std::size_t>(number);
    run_thread(p, thread, at, locks, seen[thread]);
  });

  memory_blocks own;
  std::vector<std::unique_ptr<std::byte[]>> kept;
  for (const block& b : p.blocks)
    own.push_back(kept.emplace_back(std::make_unique<std::byte[]>(b.bytes)).get());
  const loads expected = run_in_turn(p, own, locks.turn_of);
  const auto threads = static_cast<std::size_t>(p.threads_of_rank);
  const std::size_t first = static_cast<std::size_t>(rank_me()) * threads;
  for (std::size_t t = first; t < first + threads; ++t) CHECK(seen[t] == expected[t]);
  for (std::size_t b = 0; b < own.size(); ++b)
    CHECK_EQUAL(std::memcmp(at[b], own[b], p.blocks[b].bytes), 0);

  shared::barrier();
  for (std::size_t b = 0; b < at.size(); ++b)
    if (p.blocks[b].allocated_on == rank_me()) shared::free(at[b]);
  if (rank_me() == 0) {
    shared::free(locks.mutexes);
    shared::free(locks.turn_of);
  }
  if (rank_me() == rank_count() - 1) shared::free(locks.turns_taken);
}

u64 number_after(int argc, char** argv, std::string_view option, u64 otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == option) return std::strtoull(argv[i + 1], nullptr, 10);
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [&] {
    u64 seed = number_after(argc, argv, "--seed", 1);
    if (seed == 0) seed = given_seed();
    const u64 count = number_after(argc, argv, "--count", 60);
    for (u64 s = seed; s < seed + count; ++s) {
      const std::string claim = "shared_random --count 1 --seed " + std::to_string(s);
      check::claim(claim.c_str(), [s] { run_random_program(s); });
    }
    return check::verdict();
  });
}
