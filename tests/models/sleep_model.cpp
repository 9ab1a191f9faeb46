// SPDX-License-Identifier: Apache-2.0
// How a rank falls asleep and is woken (src/transport/shm_transport.cpp: commit, wait, wake;
// src/base/clock.cpp: sleep_on), with the steps that those take and the store buffers of
// processors: a store becomes visible some time after the instructions behind it have loaded what
// they load. All orders of steps are gone through.
//
//   sender                                    rank that has nothing to do
//     publish the message                       look for messages
//     load `asleep`; 0: done                    asleep = 1, and a fence
//     exchange `asleep` with 0; was 1: wake     membarrier: whoever runs executes a fence
//                                               look again; there is one: asleep = 0, done
//                                               sleep as long as `asleep` is 1
#include <array>
#include <cstdint>

#include "explore.hpp"

namespace {

constexpr int senders = 2;
constexpr int messages_each = 2;

/// What a wrong program leaves out.
struct program {
  bool membarrier = true;     ///< Or, where the system has none, …
  bool sender_fence = false;  ///< … the sender's own fence after it has published.
  bool own_fence = true;      ///< After asleep = 1.
  bool second_look = true;
  bool sleeps_by_value =
      true;  ///< The system compares `asleep` with 1 as it puts the rank to sleep.
};

enum class at : std::uint8_t {
  publish,
  look,
  exchange,
  wake,  // the sender
  poll,
  say,
  barrier,
  look_again,
  take_back,
  sleep,
  asleep,
  woken  // the other
};

struct sender {
  at pc = at::publish;
  std::uint8_t published = 0;  ///< In its program's order …
  std::uint8_t visible = 0;    ///< … and to others.
};
struct state {
  std::array<sender, senders> s{};
  at pc = at::poll;
  std::uint8_t word = 0;      ///< `asleep`, as others see it.
  std::uint8_t own_word = 0;  ///< As the rank itself has stored it: in its buffer while …
  std::uint8_t buffered = 0;  ///< … this is 1.
  std::uint8_t read = 0;
};

int visible(const state& s) {
  int n = 0;
  for (const sender& each : s.s) n += each.visible;
  return n;
}
constexpr int all_messages = senders * messages_each;

template <class Emit>
void step_sender(const program& p, const state& s, std::size_t i, Emit emit) {
  state n = s;
  sender& me = n.s[i];
  // A buffered store becomes visible at any time.
  if (me.visible < me.published) {
    ++me.visible;
    emit(n, nullptr);
    n = s;
  }
  switch (me.pc) {
    case at::publish:
      if (me.published == messages_each) return;
      ++me.published;
      if (p.sender_fence) me.visible = me.published;
      me.pc = at::look;
      return emit(n, nullptr);
    case at::look:
      me.pc = s.word != 0 ? at::exchange : at::publish;
      return emit(n, nullptr);
    case at::exchange:
      // An atomic exchange is a fence, too.
      me.visible = me.published;
      me.pc = s.word != 0 ? at::wake : at::publish;
      n.word = 0;
      return emit(n, nullptr);
    case at::wake:
      if (s.pc == at::asleep) n.pc = at::woken;
      me.pc = at::publish;
      return emit(n, nullptr);
    default:
      return;
  }
}

template <class Emit>
void step_sleeper(const program& p, const state& s, Emit emit) {
  state n = s;
  if (s.buffered != 0) {
    n.word = s.own_word;
    n.buffered = 0;
    emit(n, nullptr);
    n = s;
  }
  auto store = [&](std::uint8_t value, bool fence) {
    n.own_word = value;
    n.buffered = fence ? 0 : 1;
    if (fence) n.word = value;
  };
  const bool arrived = visible(s) > s.read;
  switch (s.pc) {
    case at::poll:
      if (s.read == all_messages) return;
      if (arrived) {
        ++n.read;
      } else {
        n.pc = at::say;
      }
      return emit(n, nullptr);
    case at::say:
      store(1, p.own_fence);
      n.pc = at::barrier;
      return emit(n, nullptr);
    case at::barrier:
      if (p.membarrier) {
        for (sender& each : n.s) each.visible = each.published;
      }
      n.pc = at::look_again;
      return emit(n, nullptr);
    case at::look_again:
      n.pc = p.second_look && arrived ? at::take_back : at::sleep;
      return emit(n, nullptr);
    case at::take_back:
      store(0, false);
      n.pc = at::poll;
      return emit(n, nullptr);
    case at::sleep: {
      // A system call: what was stored before it is visible.
      if (s.buffered != 0) n.word = s.own_word;
      n.buffered = 0;
      n.pc = p.sleeps_by_value && n.word == 0 ? at::woken : at::asleep;
      return emit(n, nullptr);
    }
    case at::woken:
      // Woken or not put to sleep: it looks at the word again.
      n.pc = s.word != 0 && p.sleeps_by_value ? at::sleep : at::poll;
      return emit(n, nullptr);
    default:
      return;  // asleep
  }
}

models::exploration<state> explored(const program& p) {
  return models::explore(
      state{},
      [&](const state& s, auto emit) {
        for (std::size_t i = 0; i < senders; ++i) step_sender(p, s, i, emit);
        step_sleeper(p, s, emit);
      },
      [](const state& s) {
        return s.read == all_messages ? nullptr : "it sleeps, and messages are there";
      });
}

}  // namespace

int main() {
  using models::holds;
  using models::is_found;
  program p;
  holds("sleeping and waking", explored(p));
  p.membarrier = false;
  is_found("the membarrier", explored(p));
  p.sender_fence = true;
  holds("with fences in place of the membarrier", explored(p));
  p.own_fence = false;
  is_found("the sleeper's own fence, where senders have theirs", explored(p));
  p = {};
  p.second_look = false;
  is_found("the second look", explored(p));
  p = {};
  p.sleeps_by_value = false;
  is_found("the comparison as the rank falls asleep", explored(p));
  return models::failures == 0 ? 0 : 1;
}
