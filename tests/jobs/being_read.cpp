// SPDX-License-Identifier: Apache-2.0
// Frames that another rank reads stay as they are until it has read them, whatever else wants to
// run in their slot. With SOJOURN_EXECUTION=heap a child lies on a stack of its own, and refers to
// frames of its caller in another slot: there, too, it must not be overwritten what is being read.
#include <array>
#include <chrono>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "check.hpp"

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

/// Of this rank: what is set lets its endless fibers end.
bool over = false;

/// Answers late: what it has been sent lies unread meanwhile.
void busy() {
  while (!over) {
    const auto until = std::chrono::steady_clock::now() + 300us;
    while (std::chrono::steady_clock::now() < until) {
    }
    yield();
  }
}

void begin() {
  over = false;
  barrier();
  if (rank_me() == 1) spawn(busy).detach();
  barrier();
}
void end() {
  barrier();
  over = true;
  barrier();
}

/// A caller whose child keeps asking for its turn, and needs the caller's frame each time.
void parent() {
  std::uint64_t turns = 0;
  auto child = fork([&] {
    while (!over) {
      ++turns;
      yield();
    }
  });
  child.get();
  CHECK(turns > 0);
}

void traveller(int rounds) {
  std::pmr::vector<std::uint64_t> values(100, 7, thread_heap());
  for (int i = 0; i < rounds; ++i) {
    migrate(self(), 1);
    if (i == 0) sleep_for(50ms);
    migrate(self(), 0);
  }
  for (std::uint64_t value : values) CHECK_EQUAL(value, 7);
}

/// A thread with a heap comes back to its first slot, in which other fibers' frames lie by now, and
/// leaves again, while children refer to those frames.
void a_thread_leaves_a_slot_that_others_use() {
  begin();
  if (rank_me() == 0) {
    thread t = spawn(traveller, 100);
    for (int i = 0; i < 20; ++i) yield();
    sleep_for(5ms);
    std::vector<thread> parents;
    for (int i = 0; i < 4; ++i) {
      parents.push_back(spawn(parent));
      yield();
    }
    t.join();
    over = true;
    for (thread& p : parents) p.join();
  }
  end();
}

std::uint64_t travels_far(std::uint64_t round) {
  std::array<std::uint64_t, 6000> values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * 3 + round;
  migrate_to(1);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != i * 3 + round;
  return wrong;
}

/// Frames so long that the other rank reads them where they lie leave, while a child refers to the
/// frames of their caller.
void long_frames_leave_beside_a_child() {
  begin();
  if (rank_me() == 0) {
    thread t = spawn([] {
      std::uint64_t turns = 0, wrong = 0;
      bool done = false;
      auto child = fork([&] {
        while (!done) {
          ++turns;
          yield();
        }
      });
      for (std::uint64_t round = 0; round < 50; ++round) wrong += activate(travels_far, round);
      done = true;
      child.get();
      CHECK_EQUAL(wrong, 0);
      CHECK(turns > 0);
    });
    t.join();
  }
  end();
}

/// The same with children that only begin while the frames are being read.
void children_begin_beside_long_frames() {
  begin();
  if (rank_me() == 0) {
    thread t = spawn([] {
      std::uint64_t wrong = 0, ran = 0;
      for (std::uint64_t round = 0; round < 50; ++round) {
        auto first = fork([&] { wrong += activate(travels_far, round); });
        auto second = fork([&] { ++ran; });
        first.get();
        second.get();
      }
      CHECK_EQUAL(wrong, 0);
      CHECK_EQUAL(ran, 50);
    });
    t.join();
  }
  end();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a thread leaves a slot that others use", a_thread_leaves_a_slot_that_others_use);
    check::claim("long frames leave beside a child", long_frames_leave_beside_a_child);
    check::claim("children begin beside long frames", children_begin_beside_long_frames);
    return check::verdict();
  });
}
