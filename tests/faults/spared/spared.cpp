// SPDX-License-Identifier: Apache-2.0
// Correct programs that look as if they made a mistake: checked mode says nothing of them.
// Usage: spared CLAIM, or all of them
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

namespace {

struct cell {
  long value = 1;
  long get() const { return value; }
};
using cell_ptr = global_ptr<cell>;

#define APART [[gnu::noinline]]
rank_t next() { return (rank_me() + 1) % rank_count(); }
long visit(cell_ptr c) { return c.call<&cell::get>(via::migrate); }

// Each rank has its own.
std::vector<std::string> lines;
std::map<long, std::string> cache;
std::vector<std::string> log_of_rank;
std::unique_ptr<std::vector<long>> kept;

/// Leaves addresses of libraries and of freed memory on the stack.
APART void noise(const char* s) {
  std::printf("%s %f\n", s, 1.5);
  try {
    throw std::runtime_error("x");
  } catch (const std::exception&) {
  }
}
APART long partly_written(cell_ptr c) {
  char text[512];
  std::snprintf(text, sizeof text, "v%d", 5);
  inline_string<40> in_place("abc");
  std::string shorter = "short";
  long value = visit(c);
  return value + static_cast<long>(std::strlen(text) + in_place.size() + shorter.size());
}
long dead_words_in_buffers(cell_ptr c) {
  noise("a");
  return partly_written(c);
}

long loops_over_what_the_rank_has(cell_ptr c) {
  long sum = 0;
  for (const auto& l : lines) sum += static_cast<long>(l.find('x'));
  for (const auto& [k, v] : cache) sum += k + static_cast<long>(v.find("z"));
  return sum + visit(c);
}

long an_inner_scope_has_ended(cell_ptr c) {
  {
    std::string text = "a text that is too long to be kept in place " + std::to_string(rank_me());
    log_of_rank.push_back(text);
  }
  {
    kept = std::make_unique<std::vector<long>>(100, 1L);
  }
  return visit(c);
}

struct large {
  long numbers[200];
};
APART long deep(cell_ptr c, int depth) {
  if (depth == 0) return visit(c);
  large here;  // hardly written
  here.numbers[3] = depth;
  long below = activate(
      [](cell_ptr p, int d) {
        large mine;
        mine.numbers[7] = d;
        long value = deep(p, d);
        return value + mine.numbers[7] - d;
      },
      c, depth - 1);
  return below + here.numbers[3] - depth;
}
long large_frames_after_a_check(cell_ptr c) {
  long sum = 0;
  for (int i = 0; i < 6; ++i) sum += deep(c, i % 4);
  return sum;
}

std::mutex guard;
long copies_do_not_wait(cell_ptr c) {
  auto p = make<long>(next(), 5L);
  long sum = 0;
  {
    nonblocking promise;
    sum += load(p);
  }
  {
    std::lock_guard lock(guard);
    sum += load(p);
  }
  static long once = load(p) + 1;
  sum += once;
  destroy(p);
  return sum - sum + visit(c);
}

struct one {
  long value;
};
long parts_are_copied_as_what_they_are(cell_ptr c) {
  auto first = make<one>(next());
  store(global_ptr<long>::at(first.address()), 4L);
  long sum = load(first).value;
  auto numbers = make_array<unsigned>(next(), 8);
  std::array<int, 8> signs{};
  get(global_ptr<int>::at(numbers.address()), std::span<int>(signs));
  auto reals = make_array<double>(next(), 8);
  auto four = load(global_ptr<std::array<double, 4>>::at(reals.address()));
  sum += static_cast<long>(four[0]);
  destroy(first);
  destroy_array(numbers, 8);
  destroy_array(reals, 8);
  return sum - sum + visit(c);
}

struct waits_at_its_end {
  ~waits_at_its_end() {
    rpc(next(), [] { return 1L; }).get();
  }
};
long a_destructor_waits(cell_ptr c) {
  auto p = make<waits_at_its_end>(rank_me());
  destroy(p);
  return visit(c);
}

struct {
  const char* name;
  long (*run)(cell_ptr);
} const claims[] = {
    {"dead_words_in_buffers", dead_words_in_buffers},
    {"loops_over_what_the_rank_has", loops_over_what_the_rank_has},
    {"an_inner_scope_has_ended", an_inner_scope_has_ended},
    {"large_frames_after_a_check", large_frames_after_a_check},
    {"copies_do_not_wait", copies_do_not_wait},
    {"parts_are_copied_as_what_they_are", parts_are_copied_as_what_they_are},
    {"a_destructor_waits", a_destructor_waits},
};

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "";
  return run(argc, argv, [only] {
    for (long i = 0; i < 20; ++i) {
      cache[i] = "a text that is long enough for the heap " + std::to_string(i);
      lines.push_back(cache[i]);
    }
    auto mine = make<cell>(rank_me());
    std::vector<cell_ptr> all = all_gather(mine);
    for (const auto& claim : claims) {
      if (*only != 0 && std::strcmp(only, claim.name) != 0) continue;
      for (int again = 0; again < 3; ++again) {
        activate(claim.run, all[static_cast<std::size_t>(next())]);
      }
    }
    barrier();
    destroy(mine);
  });
}
