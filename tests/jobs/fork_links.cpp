// SPDX-License-Identifier: Apache-2.0
// Sites of forks whose children block often, seldom or never, so that their marks are found by
// links, by walks, or by both in turn (sojourn/detail/fork_site.hpp).
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

using word = std::uint64_t;

/// Calls body() below so many frames.
template <class Body>
[[gnu::noinline]] word below(int frames, Body& body) {
  volatile word kept = static_cast<word>(frames);
  const word found = frames > 0 ? below(frames - 1, body) : body();
  return found + kept - static_cast<word>(frames);
}

/// Takes what it may have to wait for, below so many frames.
[[gnu::noinline]] word wait_below(int frames, future<word>* from) {
  auto body = [from] { return from->get(); };
  return below(frames, body);
}

[[gnu::noinline]] word never_blocks(word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    sum += fork([](word v) { return v + 1; }, i).get();
  }
  return sum;
}

/// A child for each i, which blocks when blocks(i).
template <class Blocks>
[[gnu::always_inline]] inline word fork_each(word count, int frames, Blocks blocks) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    auto [answer, result] = make_continuation<word>();
    const bool waits = blocks(i);
    if (!waits) answer(i);
    auto child = fork([from = &result, frames] { return wait_below(frames, from); });
    CHECK_EQUAL(child.ready(), !waits);
    if (waits) answer(i);
    sum += child.get();
  }
  return sum;
}
[[gnu::noinline]] word always_blocks(word count) {
  return fork_each(count, 3, [](word) { return true; });
}
[[gnu::noinline]] word blocks_at_first(word count) {
  return fork_each(count, 3, [](word i) { return i < 10; });
}
[[gnu::noinline]] word blocks_now_and_then(word count) {
  return fork_each(count, 40, [](word i) { return i % 7 == 3; });
}

constexpr word sum_below(word count) { return count * (count - 1) / 2; }

void children_give_what_they_found_at_sites_of_all_kinds() {
  constexpr word count = 2000;
  CHECK_EQUAL(never_blocks(count), sum_below(count) + count);
  CHECK_EQUAL(always_blocks(count), sum_below(count));
  CHECK_EQUAL(blocks_at_first(count), sum_below(count));
  CHECK_EQUAL(blocks_now_and_then(count), sum_below(count));
}

/// Forks a child at each level, and the youngest waits. Each level has a site of its own, and forks
/// another child before that never blocks, and so never has a link.
template <int Level>
[[gnu::noinline]] word nested(future<word>* from) {
  if constexpr (Level == 0) {
    return from->get();
  } else {
    future<word> before = fork([](word v) { return v; }, word{Level});
    future<word> child = fork([from] { return nested<Level - 1>(from); });
    const word own = before.get();
    return child.get() + own;
  }
}

void each_level_of_nested_children_goes_on_when_the_one_below_it_waits() {
  constexpr int levels = 12;
  constexpr word of_levels = levels * (levels + 1) / 2;
  for (word i = 0; i < 200; ++i) {
    auto [answer, result] = make_continuation<word>();
    future<word> all = fork([from = &result] { return nested<levels>(from); });
    CHECK(!all.ready());
    answer(i);
    CHECK_EQUAL(all.get(), i + of_levels);
  }
}

/// Answers what its own child waits for. Each `Site` is one that no child has blocked at before.
template <int Site>
[[gnu::noinline]] word answers_its_child() {
  auto [answer, result] = make_continuation<word>();
  auto child = fork([from = &result] { return wait_below(2, from); });
  answer(word{Site});
  return child.get();
}

void a_fork_without_a_link_is_found_below_one_that_has_one() {
  always_blocks(100);
  word sum = 0;
  [&]<int... Site>(std::integer_sequence<int, Site...>) {
    const std::array each{&answers_its_child<Site>...};
    for (word i = 0; i < each.size(); ++i) {
      auto [answer, result] = make_continuation<word>();
      // By way of a link once the first two have blocked.
      auto child = fork([from = &result, function = each[i]] {
        const word found = function();
        return from->get() + found;
      });
      answer(word{100});
      sum += child.get();
    }
  }(std::make_integer_sequence<int, 16>());
  CHECK_EQUAL(sum, word{16 * 100 + 120});
}

struct failed : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Its children throw, through the frames in between, or wait and then throw.
[[gnu::noinline]] word throws_or_waits(word which, future<word>* from) {
  if (which % 3 == 0) throw failed("at once");
  const word found = wait_below(5, from);
  if (which % 3 == 1) throw failed("later");
  return found;
}

void what_a_child_throws_leaves_the_links_of_its_callers_right() {
  std::minstd_rand random(17);
  for (word i = 0; i < 600; ++i) {
    const word which = random() % 6;
    auto [answer, result] = make_continuation<word>();
    auto outer = fork([from = &result, which, i] {
      word caught = 0;
      for (word inner = 0; inner < 3; ++inner) {
        try {
          caught += fork([inner] {
                      if (inner == 1) throw failed("inside");
                      return inner;
                    }).get();
        } catch (const failed&) {
          caught += 100;
        }
      }
      return throws_or_waits(which, from) + caught - i;
    });
    answer(i);
    bool threw = false;
    try {
      CHECK_EQUAL(outer.get(), word{102});
    } catch (const failed&) {
      threw = true;
    }
    CHECK_EQUAL(threw, which % 3 != 2);
  }
}

/// Its children refer to its variables, as do theirs; all wait, and so does it while they do.
[[gnu::noinline]] word refers(int depth, std::vector<future<word>>& answers) {
  word own = 1, below = 0;
  auto first = fork([&] { own += answers[static_cast<std::size_t>(2 * depth)].get(); });
  auto second = fork([&] {
    if (depth > 0) below = refers(depth - 1, answers);
    own += answers[static_cast<std::size_t>(2 * depth + 1)].get();
  });
  second.get();
  first.get();
  return own + below;
}

void children_refer_to_their_callers_frames() {
  constexpr int depth = 6;
  constexpr word children = 2 * (depth + 1);
  std::minstd_rand random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<future<word>> results(children);
    std::vector<continuation<word>> answers(children);
    for (word i = 0; i < children; ++i)
      std::tie(answers[i], results[i]) = make_continuation<word>();
    auto all = fork([&results] { return refers(depth, results); });
    std::vector<word> order(children);
    std::iota(order.begin(), order.end(), word{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const word i : order) {
      answers[i](i);
      if (random() % 2 == 0) yield();
    }
    CHECK_EQUAL(all.get(), children * (children - 1) / 2 + depth + 1);
  }
}

bool waits_in_function = false;
template <class... P>
double sum_of(P... each) {
  if (waits_in_function) yield();
  return (0.0 + ... + static_cast<double>(each));
}

/// A function is called through one of the runtime's, with its own address behind the arguments.
void functions_get_their_parameters_as_they_are() {
  for (int round = 0; round < 40; ++round) {
    waits_in_function = round % 3 != 0;
    const auto i = static_cast<std::int8_t>(round - 20);
    CHECK_EQUAL(fork(sum_of<double>, 0.5 * round).get(), 0.5 * round);
    CHECK_EQUAL(fork(sum_of<float, double>, 0.25f, 0.5).get(), 0.75);
    CHECK_EQUAL(fork(sum_of<bool, char, double, float>, true, char{3}, 0.5, 0.25f).get(), 4.75);
    CHECK_EQUAL(fork(sum_of<std::int8_t, std::uint8_t, long, double, double>, i, std::uint8_t{200},
                     -7L, 0.5, 0.5)
                    .get(),
                194.0 + i);
    CHECK_EQUAL(fork(sum_of<int, int, int, int, int, int>, 1, 2, 3, 4, 5, round).get(),
                15.0 + round);
  }
}

/// Children that wait for other ranks, below children that move to them.
[[gnu::noinline]] word travels(rank_t to, word value) {
  return rpc(
             to,
             [](word v) {
               word sum = 0;
               for (word i = 0; i < 4; ++i) {
                 auto later = fork([i, v] {
                   yield();
                   return i + v;
                 });
                 sum += later.get();
               }
               return sum;
             },
             value)
      .get();
}

void children_below_links_move_and_come_back() {
  const rank_t next = (rank_me() + 1) % rank_count();
  for (word i = 0; i < 300; ++i) {
    auto child = fork([next, i] {
      auto inner = fork([next, i] { return travels(next, i); });
      return inner.get() + 1;
    });
    CHECK_EQUAL(child.get(), 4 * i + 7);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("children give what they found at sites of all kinds",
                 children_give_what_they_found_at_sites_of_all_kinds);
    check::claim("each level of nested children goes on when the one below it waits",
                 each_level_of_nested_children_goes_on_when_the_one_below_it_waits);
    check::claim("a fork without a link is found below one that has one",
                 a_fork_without_a_link_is_found_below_one_that_has_one);
    check::claim("what a child throws leaves the links of its callers right",
                 what_a_child_throws_leaves_the_links_of_its_callers_right);
    check::claim("children refer to their callers' frames", children_refer_to_their_callers_frames);
    check::claim("functions get their parameters as they are",
                 functions_get_their_parameters_as_they_are);
    check::claim("children below links move and come back",
                 children_below_links_move_and_come_back);
    return check::verdict();
  });
}
