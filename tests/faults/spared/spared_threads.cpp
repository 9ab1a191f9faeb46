// SPDX-License-Identifier: Apache-2.0
// Correct threads that others move, whose frames look as if they made a mistake: checked mode does
// not stop them. Usage: spared_threads CLAIM, or all of them
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

namespace {

#define APART [[gnu::noinline]]

// --- how they are moved --------------------------------------------------------------------------

bool enough = false;  // of each rank

/// Ready, asleep, and waiting for a result by turns, wherever it is, until rank 0 says so.
APART void is_moved_about() {
  for (int i = 0; !rpc(0, [] { return enough; }).get(); ++i) {
    if (i % 3 == 0) sleep_for(std::chrono::microseconds(300));
    for (int n = 0; n < 5; ++n) yield();
  }
}

// --- what their frames hold ----------------------------------------------------------------------

/// Leaves addresses of libraries, of other stacks and of freed memory on the stack.
APART void noise(const char* s) {
  char text[64];
  std::snprintf(text, sizeof text, "%s %f", s, 1.5);
  std::fputs("", stdout);
  try {
    throw std::runtime_error("x");
  } catch (const std::exception&) {
  }
  std::vector<std::string> texts(8, std::string(40, 'y'));
  texts.erase(texts.begin() + 2);
}

APART long partly_written() {
  char text[512];
  std::snprintf(text, sizeof text, "v%d", 5);
  std::string shorter = "short";
  is_moved_about();
  return static_cast<long>(std::strlen(text) + shorter.size());
}
void dead_words_in_buffers() {
  noise("a");
  if (partly_written() != 7) std::abort();
}

// Each rank has its own, and keeps it.
std::vector<std::string> lines;
std::map<long, std::string> cache;
std::unique_ptr<std::vector<long>> kept;

void loops_over_what_the_rank_has() {
  std::size_t sum = 0;
  for (const auto& l : lines) sum += l.size();
  for (const auto& [k, v] : cache) sum += v.size();
  is_moved_about();
  if (sum == 0) std::abort();
}

void an_inner_scope_has_ended() {
  {
    std::string text = "a text that is too long to be kept in place " + std::to_string(rank_me());
    if (lines.size() < 1000) lines.push_back(text);
  }
  {
    kept = std::make_unique<std::vector<long>>(100, 1L);
  }
  is_moved_about();
}

struct large {
  long numbers[200];
};
APART long deep(int depth) {
  if (depth == 0) {
    is_moved_about();
    return 0;
  }
  large here;  // hardly written
  here.numbers[3] = depth;
  return deep(depth - 1) + here.numbers[3];
}
void large_frames() {
  noise("b");
  if (deep(8) != 36) std::abort();
}

void a_heap_of_its_own() {
  std::pmr::map<long, std::pmr::string> all(thread_heap());
  for (long i = 0; i < 20; ++i) all[i] = "a text that is long enough for the heap";
  is_moved_about();
  if (all.size() != 20 || all[7].size() != 39) std::abort();
}

APART long inner(global_ptr<long> there) {
  migrate_to(there.where());
  noise("c");
  return *there.local();
}
void activations_of_it_have_been_away() {
  auto there = make<long>((rank_me() + 1) % rank_count(), 7L);
  long sum = 0;
  for (int i = 0; i < 3; ++i) sum += activate(inner, there);
  is_moved_about();
  if (sum != 21) std::abort();
  destroy(there);
}

struct {
  const char* name;
  void (*body)();
} const claims[] = {
    {"dead_words_in_buffers", dead_words_in_buffers},
    {"loops_over_what_the_rank_has", loops_over_what_the_rank_has},
    {"an_inner_scope_has_ended", an_inner_scope_has_ended},
    {"large_frames", large_frames},
    {"a_heap_of_its_own", a_heap_of_its_own},
    {"activations_of_it_have_been_away", activations_of_it_have_been_away},
};

/// By name, round all ranks; then, when there are several, by load balance.
void moved(const char* name, void (*body)(), bool shares) {
  for (balance_policy policy :
       {balance_policy::none, balance_policy::steal, balance_policy::diffuse}) {
    enough = false;
    balance(policy);
    if (rank_me() == 0) {
      std::uint64_t before = counters_now().migrations;
      std::vector<thread> all;
      for (int i = 0; i < 8; ++i) all.push_back(spawn({.shared_stack = shares}, body));
      if (policy == balance_policy::none) {
        for (int i = 0; i < 4 * rank_count(); ++i) {
          for (thread t : all) migrate(t, i % rank_count());
        }
      } else {
        sleep_for(std::chrono::milliseconds(20));
      }
      enough = true;
      for (thread t : all) t.join();
      if (rank_count() > 1 && policy == balance_policy::none &&
          counters_now().migrations == before) {
        std::fprintf(stderr, "%s: no thread was moved\n", name);
        std::abort();
      }
    }
    barrier();
  }
  balance(balance_policy::none);
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "";
  return run(argc, argv, [only] {
    for (long i = 0; i < 20; ++i) {
      cache[i] = "a text that is long enough for the heap " + std::to_string(i);
      lines.push_back(cache[i]);
    }
    for (const auto& claim : claims) {
      if (*only != 0 && std::strcmp(only, claim.name) != 0) continue;
      for (bool shares : {false, true}) moved(claim.name, claim.body, shares);
    }
  });
}
