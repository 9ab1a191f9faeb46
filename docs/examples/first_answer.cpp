// SPDX-License-Identifier: Apache-2.0
// The first of several answers: docs/calls.md.
#include <sojourn/sojourn.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

using namespace sojourn;
using namespace std::chrono_literals;

// Each rank has its own.
semaphore archive(0);

/// The last rank knows the answer; the others wait until their archive opens.
rank_t look_up() {
  if (rank_me() != rank_count() - 1) archive.acquire();
  return rank_me();
}

void ask_all() {
  std::vector<future<rank_t>> asked;
  for (rank_t r = 0; r < rank_count(); ++r) asked.push_back(rpc(r, look_up));

  auto [index, answers] = when_any(std::move(asked)).get();
  std::printf("the first answer: rank %d\n", answers[index].get());

  // The others are as good as before.
  answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(index));
  const bool more = !answers.empty() && answers.front().wait_for(1ms);
  std::printf("another one within 1 ms: %s\n", more ? "yes" : "no");

  for (rank_t r = 0; r + 1 < rank_count(); ++r) rpc_ff(r, [] { archive.release(); });
  touch(std::span(answers));
  std::printf("late answers: %zu\n", answers.size());
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() == 0) ask_all();
  });
}
