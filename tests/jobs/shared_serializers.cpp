// SPDX-License-Identifier: Apache-2.0
// Functions of a type that save it, and store to shared memory or load from it meanwhile: who gets
// the value sees what was stored, and other fibers run while a page is on its way.
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page_longs = 4096 / sizeof(long);

/// Its `save` is called twice: to measure, and to write. Each time it counts in shared memory, and
/// saves what it has counted.
struct counting {
  shared::pointer<long> count = nullptr;
  long counted = 0;
  bool fails = false;
  std::string text = {};  // so it does not travel as the bytes that it has

  template <class Archive>
  void save(Archive& archive) const {
    const long now = ++*count;
    if (fails && now % 2 == 0) throw std::runtime_error("not saved");
    archive(now, text);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(counted, text);
  }
};

/// Both ranks have had the page of `count`, and `from` has it now.
void last_used_by(rank_t from, long* count) {
  shared::barrier();
  if (rank_me() != from) CHECK(*count >= 0);
  shared::barrier();
  if (rank_me() == from) *count = 0;
  shared::barrier();
}

void what_is_stored_by_save_is_seen_where_the_value_arrives(long* count) {
  const rank_t last = rank_count() - 1;
  last_used_by(0, count);
  if (rank_me() == 0) {
    const long seen = rpc(
                          last,
                          [](const counting& c, shared::pointer<long> there) {
                            CHECK(c.counted != 0);
                            return *there - c.counted;
                          },
                          counting{.count = count}, shared::pointer<long>(count))
                          .get();
    CHECK_EQUAL(seen, 0);
  }
  last_used_by(last, count);
  if (rank_me() == 0) {
    const counting c =
        rpc(
            last, [](shared::pointer<long> there) { return counting{.count = there}; },
            shared::pointer<long>(count))
            .get();
    CHECK_EQUAL(*count, c.counted);
  }
  shared::barrier();
}

volatile long turns = 0;  ///< Of another fiber: it runs in the middle of a load.
long turns_while_waiting = 0;
/// Further apart than pages that come together.
constexpr std::size_t apart = 24 * page_longs;

/// Each time its `save` loads from another page.
struct loading {
  shared::pointer<const long> values = nullptr;
  long loaded = 0;
  std::string text = {};
  mutable std::size_t times = 0;

  template <class Archive>
  void save(Archive& archive) const {
    const long before = turns;
    const long value = *const_cast<const volatile long*>(&values[apart * times++]);
    turns_while_waiting = turns - before;
    archive(value, text);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(loaded, text);
  }
};

/// When it writes, not only when it measures.
void other_fibers_run_while_save_waits_for_a_page(long* pages) {
  static bool stops = false;
  const rank_t last = rank_count() - 1;
  const auto takes_turns = [] {
    while (!stops) {
      turns = turns + 1;
      yield();
    }
  };
  for (const bool is_result : {false, true}) {
    shared::barrier();
    if (rank_me() == (is_result ? 0 : last)) pages[0] = pages[apart] = 7;
    shared::barrier();
    stops = false;
    turns = 0;
    if (rank_me() == 0 && !is_result) {
      thread other = spawn(takes_turns);
      const long loaded = rpc(
                              last, [](const loading& l) { return l.loaded; },
                              loading{.values = shared::pointer<const long>(pages)})
                              .get();
      CHECK_EQUAL(loaded, 7);
      CHECK(turns_while_waiting > 0);
      stops = true;
      other.join();
    } else if (rank_me() == 0) {
      CHECK_EQUAL(
          rpc(
              last, [](shared::pointer<const long> values) { return loading{.values = values}; },
              shared::pointer<const long>(pages))
              .get()
              .loaded,
          7);
    }
    shared::barrier();
  }
}

/// Then nothing is half written, and all goes on as before.
void a_save_that_throws_leaves_nothing_behind(long* count, long* other) {
  const rank_t last = rank_count() - 1;
  last_used_by(last, other);
  last_used_by(0, count);
  if (rank_me() == 0) {
    bool thrown = false;
    try {
      (void)rpc(
          last, [](const counting&) { return 1; }, counting{.count = count, .fails = true})
          .get();
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    CHECK(thrown);
    // A page for which other fibers have to run.
    thread stores =
        spawn([](shared::pointer<long> at) { at[1] = 5; }, shared::pointer<long>(other));
    other[0] = 4;
    stores.join();
    CHECK_EQUAL(other[0] + other[1], 9);
    CHECK_EQUAL(rpc(last, [] { return 3; }).get(), 3);
  }
  shared::barrier();
  if (rank_me() == 0) {
    bool told = false;
    try {
      (void)rpc(
          last,
          [](shared::pointer<long> there) {
            *there = 0;
            return counting{.count = there, .fails = true};
          },
          shared::pointer<long>(count))
          .get();
    } catch (const error& e) {
      told = std::string(e.what()).find("not saved") != std::string::npos;
    }
    CHECK(told);
  }
  shared::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    long* all = nullptr;
    if (rank_me() == 0) all = shared::alloc<long>(2 * apart);
    all = broadcast(shared::pointer<long>(all), 0).get();
    check::claim("what is stored by save is seen where the value arrives",
                 [&] { what_is_stored_by_save_is_seen_where_the_value_arrives(all); });
    check::claim("other fibers run while save waits for a page",
                 [&] { other_fibers_run_while_save_waits_for_a_page(all); });
    check::claim("a save that throws leaves nothing behind",
                 [&] { a_save_that_throws_leaves_nothing_behind(all, all + page_longs); });
    return check::verdict();
  });
}
