// SPDX-License-Identifier: Apache-2.0
// via::automatic: each place in the program learns which way to call costs least there, without a
// change of what the calls do.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

struct tally {
  long count = 0;
  long last = 0;

  long add(long n) { return count += n; }
  long value() const { return count; }
  void note(long n) { last = n; }
  rank_t where() const { return rank_me(); }
};

/// Objects on all ranks, which all know.
std::vector<global_ptr<tally>> one_on_each_rank() { return all_gather(make<tally>(rank_me())); }
rank_t next_rank() { return (rank_me() + 1) % rank_count(); }

constexpr int many = 4000;

counters counted_in(const auto& body) {
  const counters before = counters_now();
  body();
  return counters_now() - before;
}

void few_calls_go_to_the_owner() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  const counters c = counted_in([&] {
    for (int i = 0; i < 10; ++i) theirs.call<&tally::add>(1L);
  });
  CHECK_EQUAL(c.requests_sent, 10u);
  CHECK_EQUAL(theirs.where(), next_rank());
  barrier();
  CHECK_EQUAL(all[static_cast<std::size_t>(rank_me())].call<&tally::value>(), 10);
  barrier();
}

/// What nobody changes is read here, by a call that says nothing.
void what_is_only_read_is_read_here() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  long sum = 0;
  const counters c = counted_in([&] {
    for (int i = 0; i < many; ++i) sum += theirs.call<&tally::value>();
  });
  CHECK_EQUAL(sum, 0);
  CHECK(c.requests_sent < 40);
  CHECK(c.cache_hits > many - 40);
  barrier();
}

/// What one rank alone uses comes to it.
void what_one_rank_uses_comes_to_it() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  const counters c = counted_in([&] {
    for (int i = 0; i < many; ++i) CHECK_EQUAL(theirs.call<&tally::add>(via::automatic, 1L), i + 1);
  });
  CHECK_EQUAL(theirs.where(), rank_me());
  CHECK(c.requests_sent < 40);
  barrier();
}

/// Runs on one object on another rank; copies would be of no use, because each call changes it, and
/// the activation's home changes it as well.
long run_on(global_ptr<tally> theirs, int calls) {
  long sum = 0;
  for (int i = 0; i < calls; ++i) sum = theirs.call<&tally::add>(via::automatic, 1L);
  return sum;
}
void runs_on_one_object_go_there() {
  const global_ptr<tally> mine = make<tally>(rank_me());
  fix(mine);
  const std::vector<global_ptr<tally>> all = all_gather(mine);
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  const counters c = counted_in([&] {
    for (int i = 1; i <= many / 8; ++i) CHECK_EQUAL(activate(run_on, theirs, 8), 8L * i);
  });
  // As one call would cost: one message there, and one for the result.
  CHECK(c.requests_sent < many / 8);
  CHECK(c.migrations > many / 8 * 3 / 4);
  barrier();
  unfix(mine);
  barrier();
}

/// As run_on, at a place of its own.
long run_few_on(global_ptr<tally> theirs, int calls) {
  long sum = 0;
  for (int i = 0; i < calls; ++i) sum = theirs.call<&tally::add>(via::automatic, 1L);
  return sum;
}
/// Calls each object so often at a time, and checks that few are away in the end.
template <auto Run>
counters count_runs(int calls) {
  constexpr std::size_t each = 64;
  constexpr std::size_t runs = 20'000;
  std::vector<global_ptr<tally>> theirs;
  for (std::size_t i = 0; i < each; ++i) theirs.push_back(make<tally>(next_rank()));
  const counters c = counted_in([&] {
    for (std::size_t i = 0; i < runs; ++i) activate(Run, theirs[i * 37 % each], calls);
  });
  CHECK(c.objects_moved > 16);
  barrier();
  long away = 0;
  for (const global_ptr<tally> p : theirs) {
    CHECK_EQUAL(p.call<&tally::value>(via::rpc) % calls, 0);
    away += p.where() != next_rank();
  }
  CHECK(away < 8);
  barrier();
  return c;
}
/// Where bringing objects is not best, one that has come to be tried goes home again.
void what_has_come_as_a_trial_goes_home() {
  CHECK(count_runs<run_on>(32).migrations > 10'000);
  (void)count_runs<run_few_on>(2);
}

/// As run_on, in frames with the address of what stays behind.
long run_with(global_ptr<tally> theirs, int calls, via how, std::uint64_t address) {
  long sum = 0;
  for (int i = 0; i < calls; ++i) {
    sum = theirs.call<&tally::add>(how, 1L);
    asm volatile("" : "+r"(address));
  }
  return sum;
}
void what_has_chosen_to_migrate_is_not_searched_at_first() {
  if (detail::checked()) return;  // it has its own search
  const global_ptr<tally> mine = make<tally>(rank_me());
  fix(mine);
  const std::vector<global_ptr<tally>> all = all_gather(mine);
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  const auto stays = std::make_unique<std::array<long, 8>>();
  const auto address = reinterpret_cast<std::uint64_t>(stays.get());
  const counters c = counted_in([&] {
    for (int i = 0; i < many / 8; ++i) activate(run_with, theirs, 8, via::automatic, address);
  });
  CHECK(c.migrations > 100);
  CHECK_EQUAL(c.scan_warnings, 0u);
  const char* scan = std::getenv("SOJOURN_SCAN");
  const bool is_off = SOJOURN_ASAN || (scan != nullptr && std::string_view(scan) == "off");
  const counters asked = counted_in([&] { activate(run_with, theirs, 8, via::migrate, address); });
  if (!is_off) CHECK(asked.scan_warnings > 0);
  barrier();
  unfix(mine);
  barrier();
}

/// Only what was opened as an activation migrates.
void what_is_no_activation_stays() {
  const global_ptr<tally> mine = make<tally>(rank_me());
  fix(mine);
  const std::vector<global_ptr<tally>> all = all_gather(mine);
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  future<bool> stayed = rpc(
      rank_me(),
      [](global_ptr<tally> p) {
        const rank_t here = rank_me();
        bool has_stayed = true;
        for (int i = 0; i < many / 4; ++i) {
          p.call<&tally::add>(via::automatic, 1L);
          has_stayed = has_stayed && rank_me() == here;
        }
        return has_stayed;
      },
      theirs);
  CHECK(stayed.get());
  barrier();
  CHECK_EQUAL(mine.call<&tally::value>(), many / 4);
  unfix(mine);
  barrier();
}

/// The program does not say that its objects and activations may move: private memory in their
/// frames, and pointers to objects, would be left behind.
long change_and_read(global_ptr<tally> theirs, int calls) {
  const rank_t here = rank_me();
  long last = 0;
  for (int i = 0; i < calls; ++i) {
    last = theirs.call<&tally::add>(1L);
    if (theirs.call<&tally::value>() != last) return -1;
  }
  return rank_me() == here ? last : -1;
}
void a_call_that_says_nothing_moves_nothing() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  const global_ptr<tally> theirs = all[static_cast<std::size_t>(next_rank())];
  const counters c =
      counted_in([&] { CHECK_EQUAL(activate(change_and_read, theirs, many / 4), many / 4); });
  CHECK_EQUAL(theirs.where(), next_rank());
  CHECK_EQUAL(c.migrations, 0u);
  CHECK_EQUAL(c.objects_moved, 0u);
  barrier();
}

/// Objects whose bytes the program changes through pointers are read where they are.
struct gauge {
  long level = 0;
  long read() const { return level; }
};
struct dial {
  long level = 0;
  global_ptr<dial> self() { return global_ptr<dial>(this); }
  long read() const { return level; }
};
void what_is_changed_past_its_methods_is_not_copied() {
  const global_ptr<gauge> mine = make<gauge>(rank_me());
  const std::vector<global_ptr<gauge>> all = all_gather(mine);
  const std::vector<global_ptr<dial>> dials = all_gather(make<dial>(rank_me()));
  const global_ptr<gauge> theirs = all[static_cast<std::size_t>(next_rank())];
  const global_ptr<dial> dial_there = dials[static_cast<std::size_t>(next_rank())];
  CHECK(dials[static_cast<std::size_t>(rank_me())].call<&dial::self>() ==
        dials[static_cast<std::size_t>(rank_me())]);
  const counters c = counted_in([&] {
    for (int round = 1; round <= 8; ++round) {
      mine.local()->level = round;
      barrier();
      for (int i = 0; i < 50; ++i) {
        CHECK_EQUAL(theirs.call<&gauge::read>(via::automatic), round);
        CHECK_EQUAL(dial_there.call<&dial::read>(), 0);
      }
      barrier();
    }
  });
  CHECK_EQUAL(c.cache_misses, 0u);
  barrier();
}

/// All ranks change one object, each once before all do so again: it stays where it is, nearly
/// always.
void what_all_change_stays() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  const global_ptr<tally> shared = all[0];
  const int turns = many / rank_count();
  const counters before = counters_now();
  for (int i = 0; i < turns; ++i) {
    shared.call<&tally::add>(via::automatic, 1L);
    barrier();
  }
  barrier();
  const long moves =
      reduce(static_cast<long>((counters_now() - before).objects_moved), std::plus<>{});
  CHECK_EQUAL(shared.call<&tally::value>(), static_cast<long>(turns) * rank_count());
  CHECK(moves < turns / 2);
  barrier();
}

/// A rank that calls its own objects all the time is not asked to slow down for a reader.
void a_rank_that_works_on_its_own_objects_keeps_them() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  barrier();
  const counters before = counters_now();
  if (rank_me() == 0) {
    const global_ptr<tally> mine = make<tally>(0);
    for (int i = 0; i < 200; ++i) {
      for (int k = 0; k < 20'000; ++k) mine.call<&tally::add>(1L);
      yield();
    }
    CHECK_EQUAL(mine.call<&tally::value>(), 200L * 20'000);
    destroy(mine);
  } else {
    for (int i = 0; i < 200; ++i) CHECK_EQUAL(all[0].call<&tally::value>(), 0);
  }
  barrier();
  if (rank_me() == 0) CHECK((counters_now() - before).copies_given < 8);
  barrier();
}

/// The same place, and another use of it: now each value is read once between two changes.
void a_place_follows_what_the_program_does() {
  const std::vector<global_ptr<tally>> all = one_on_each_rank();
  const global_ptr<tally> theirs = all[0];
  auto read = [](global_ptr<tally> p) { return p.call<&tally::value>(); };
  barrier();
  if (rank_me() == 1) {
    for (int i = 0; i < many; ++i) CHECK_EQUAL(read(theirs), 0);
  }
  barrier();
  const counters before = counters_now();
  constexpr int rounds = 2000;
  for (int i = 1; i <= rounds; ++i) {
    if (rank_me() == 0) theirs.call<&tally::add>(1L);
    barrier();
    if (rank_me() == 1) CHECK_EQUAL(read(theirs), i);
    barrier();
  }
  const counters c = counters_now() - before;
  if (rank_me() == 1) CHECK(c.cache_misses < rounds / 2);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_count() == 1) return 0;
    check::claim("few calls go to the owner", few_calls_go_to_the_owner);
    check::claim("what is only read is read here", what_is_only_read_is_read_here);
    check::claim("what one rank uses comes to it", what_one_rank_uses_comes_to_it);
    check::claim("runs on one object go there", runs_on_one_object_go_there);
    check::claim("what has come as a trial goes home", what_has_come_as_a_trial_goes_home);
    check::claim("what has chosen to migrate is not searched for pointers at first",
                 what_has_chosen_to_migrate_is_not_searched_at_first);
    check::claim("what is no activation stays", what_is_no_activation_stays);
    check::claim("a call that says nothing moves nothing", a_call_that_says_nothing_moves_nothing);
    check::claim("what is changed past its methods is not copied",
                 what_is_changed_past_its_methods_is_not_copied);
    check::claim("what all change stays", what_all_change_stays);
    check::claim("a rank that works on its own objects keeps them",
                 a_rank_that_works_on_its_own_objects_keeps_them);
    check::claim("a place follows what the program does", a_place_follows_what_the_program_does);
    return check::verdict();
  });
}
