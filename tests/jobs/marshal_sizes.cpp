// SPDX-License-Identifier: Apache-2.0
// Arguments and results from nothing to 1 GiB: right, and copied no oftener than must be.
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

using words = std::vector<std::uint64_t>;

constexpr std::size_t quick_max = std::size_t{1} << (sanitized ? 23 : 26);

std::uint64_t word_at(std::size_t i) { return i * 0x9e3779b97f4a7c15u + 1; }
words words_of(std::size_t bytes) {
  words w(bytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = word_at(i);
  return w;
}
/// Each 511th of them, the first and the last.
bool are_right(std::span<const std::uint64_t> w, std::size_t bytes) {
  if (w.size() != bytes / sizeof(std::uint64_t)) return false;
  for (std::size_t i = 0; i < w.size(); i += 511) {
    if (w[i] != word_at(i)) return false;
  }
  return w.empty() || w.back() == word_at(w.size() - 1);
}

int next_rank() { return (rank_me() + 1) % rank_count(); }

const std::size_t sizes[] = {0,       8,       64,      1000,     8000,     8192,     65528,
                             65536,   65544,   524'272, 524'280,  524'288,  524'296,  1 << 20,
                             3 << 20, 5 << 20, 9 << 20, 17 << 20, 33 << 20, quick_max};

void arguments_of_all_sizes_arrive() {
  for (std::size_t bytes : sizes) {
    if (bytes > quick_max) continue;
    if (bytes > (9u << 20) && rank_count() > 2) continue;
    CHECK(rpc(
              next_rank(), [](words w, std::size_t n) { return are_right(w, n); }, words_of(bytes),
              bytes)
              .get());
    words here = words_of(bytes);
    CHECK(rpc(
              next_rank(),
              [](std::span<const std::uint64_t> w, std::size_t n) {
                yield();
                return are_right(w, n);
              },
              std::span<const std::uint64_t>(here), bytes)
              .get());
    CHECK(rpc(
              next_rank(), [](view<std::uint64_t> w, std::size_t n) { return are_right(w, n); },
              view(here), bytes)
              .get());
  }
}

void results_of_all_sizes_arrive() {
  for (std::size_t bytes : sizes) {
    if (bytes > quick_max) continue;
    if (bytes > (9u << 20) && rank_count() > 2) continue;
    CHECK(are_right(rpc(next_rank(), words_of, bytes).get(), bytes));
  }
  // Ones that nobody reads are given back by who keeps them.
  for (int i = 0; i < 3; ++i) {
    auto f = rpc(next_rank(), words_of, std::size_t{2} << 20);
    if (i == 1) f.wait();
  }
  // Read on another rank than asked for.
  bool right = activate(
      [](rank_t there, std::size_t bytes) {
        auto f = rpc(rank_me(), words_of, bytes);
        migrate_to(there);
        return are_right(f.get(), bytes);
      },
      next_rank(), std::size_t{2} << 20);
  CHECK(right);
}

struct shelf {
  std::vector<std::string> books;
  void put(std::vector<std::string> more) {
    std::move(more.begin(), more.end(), std::back_inserter(books));
  }
  std::vector<std::string> all() const { return books; }
};

void long_values_of_many_parts_arrive() {
  // Long in all: parts in blocks of their own, and so many short ones that they fill some, too.
  std::vector<std::string> books;
  for (int i = 0; i < 40; ++i)
    books.emplace_back(std::size_t{100'000}, static_cast<char>('a' + i % 26));
  for (int i = 0; i < 100'000; ++i) books.push_back(std::to_string(i));
  auto s = make<shelf>(next_rank());
  s.call<&shelf::put>(books);
  CHECK(s.call<&shelf::all>() == books);
  destroy(s);
}

struct doubled {
  words values;
  template <class Archive>
  void save(Archive& ar) const {
    words twice = values;  // gone when this returns
    twice.insert(twice.end(), values.begin(), values.end());
    ar(twice);
  }
  template <class Archive>
  void load(Archive& ar) {
    ar(values);
    values.resize(values.size() / 2);
  }
};

void what_a_save_makes_is_kept() {
  std::size_t bytes = 2u << 20;
  CHECK(rpc(
            next_rank(), [](doubled d, std::size_t n) { return are_right(d.values, n); },
            doubled{words_of(bytes)}, bytes)
            .get());
}

void many_at_once_keep_to_their_memory() {
  // More than a rank keeps at once: it waits, and all arrive.
  std::vector<future<bool>> all;
  std::size_t bytes = std::size_t{1} << 24;
  for (int i = 0; i < (sanitized || rank_count() > 2 ? 4 : 24); ++i) {
    all.push_back(rpc(
        next_rank(), [](words w, std::size_t n) { return are_right(w, n); }, words_of(bytes),
        bytes));
  }
  for (auto& f : all) CHECK(f.get());
}

void long_blocks_are_copied_once() {
  if (rank_count() == 1 || !check::system_copies()) return;
  if (rank_me() == 0) {
    std::size_t bytes = quick_max;
    words w = words_of(bytes);
    auto copies = [] { return counters_now().marshal_copies; };
    auto there = rpc(1, copies).get();
    auto here = counters_now().marshal_copies;
    rpc(1, [](words v) { return v.size(); }, std::move(w)).get();
    // The vector's storage moves along with it, and is read from there.
    CHECK(counters_now().marshal_copies - here < 100);
    CHECK(rpc(1, copies).get() - there < bytes + 200);
    words again = words_of(bytes);
    here = counters_now().marshal_copies;
    there = rpc(1, copies).get();
    rpc(1, [](view<std::uint64_t> v) { return v.size(); }, view(again)).get();
    CHECK(counters_now().marshal_copies - here < bytes + 100);  // lent: a copy waits here
    CHECK(rpc(1, copies).get() - there < bytes + 200);
  }
  barrier();
}

/// One-way, a method, by fibers side by side; to others and to this rank.
void what_a_view_shows_may_change_once_the_call_has_returned() {
  const auto next = (rank_me() + 1) % rank_count();
  finish([next] {
    std::vector<future<void>> children;
    for (std::uint64_t child = 0; child < 3; ++child) {
      children.push_back(fork([next, child] {
        words w((6u << 20) / sizeof(std::uint64_t));
        for (std::uint64_t i = 0; i < 3; ++i) {
          const std::uint64_t number = 10 * child + i;
          std::fill(w.begin(), w.end(), number);
          const auto check_all = [](view<std::uint64_t> v, std::uint64_t n) {
            CHECK(std::count(v.begin(), v.end(), n) == static_cast<std::ptrdiff_t>(v.size()));
          };
          rpc_ff(i == 1 ? rank_me() : next, check_all, view(w), number);
          std::fill(w.begin(), w.end(), ~number);
        }
      }));
    }
    for (auto& c : children) c.get();
  });
  barrier();
}

void a_function_that_never_waits_takes_long_arguments() {
  if (rank_count() == 1) return;
  if (rank_me() == 0) {
    const words w = words_of(17u << 20);
    const auto size = [](const words& v) { return v.size(); };
    CHECK_EQUAL(rpc(1, nonblocking(size), w).get(), w.size());
  }
  barrier();
}

void a_view_of_some_mebibytes_is_read_in_the_message() {
  if (rank_count() == 1) return;
  if (rank_me() == 0) {
    const std::size_t bytes = 3u << 20;
    words w = words_of(bytes);
    auto copies = [] { return counters_now().marshal_copies; };
    auto there = rpc(1, copies).get();
    auto here = counters_now().marshal_copies;
    CHECK(
        rpc(
            1, [](view<std::uint64_t> v, std::size_t n) { return are_right(v, n); }, view(w), bytes)
            .get());
    CHECK(counters_now().marshal_copies - here < bytes + 200);
    CHECK(rpc(1, copies).get() - there < 200);
  }
  barrier();
}

std::uint64_t pages_had_anew() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_minflt);
}

void long_views_one_after_the_other_use_the_same_pages() {
  if (rank_count() != 2 || sanitized || !check::system_copies()) return;
  if (rank_me() == 0) {
    constexpr std::uint64_t page_bytes = 4096;
    for (const std::size_t bytes : {std::size_t{3} << 20, std::size_t{6} << 20}) {
      words w = words_of(bytes);
      // The next one is written when the last one has been read: else it depends on how busy the
      // cores are how many lie in memory at once, each in pages of its own.
      auto send = [&](std::uint64_t calls) {
        for (std::uint64_t i = 0; i < calls; ++i) {
          rpc_ff(
              1, [](view<std::uint64_t> v, std::size_t n) { CHECK(are_right(v, n)); }, view(w),
              bytes);
          rpc(1, [] {}).get();
        }
      };
      constexpr std::uint64_t calls = 16;
      send(2 * calls);
      std::uint64_t before = pages_had_anew() + rpc(1, pages_had_anew).get();
      send(calls);
      std::uint64_t had = pages_had_anew() + rpc(1, pages_had_anew).get() - before;
      CHECK(had < calls * (bytes / page_bytes) / 8);
    }
  }
  barrier();
}

void a_gibibyte_goes_there_and_back() {
  struct sysinfo memory{};
  sysinfo(&memory);
  auto free = static_cast<std::size_t>(memory.freeram + memory.bufferram) * memory.mem_unit;
  constexpr std::size_t bytes = std::size_t{1} << 30;
  bool enough = broadcast(free > 5 * bytes) && !sanitized && rank_count() == 2;
  if (!enough) return;
  if (rank_me() == 0) {
    words back = rpc(
                     1,
                     [](words w) {
                       for (std::uint64_t& v : w) ++v;
                       return w;
                     },
                     words_of(bytes))
                     .get();
    bool right = back.size() == bytes / 8;
    for (std::size_t i = 0; i < back.size(); i += 511) right = right && back[i] == word_at(i) + 1;
    CHECK(right);
  }
  barrier();
}

void what_is_too_long_is_refused_here() {
  if (sanitized || rank_me() != 0) return;
  // Address space only: nothing of it is touched.
  std::size_t bytes = std::size_t{5} << 30;
  std::span<const std::uint64_t> much(reinterpret_cast<const std::uint64_t*>(0x10000), bytes / 8);
  CHECK_THROWS(error,
               rpc(next_rank(), [](std::span<const std::uint64_t> w) { return w.size(); }, much));
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [argc, argv] {
    using check::claim;
    if (argc > 1 && std::strcmp(argv[1], "1GiB") == 0) {
      claim("a gibibyte goes there and back", a_gibibyte_goes_there_and_back);
      return check::verdict();
    }
    claim("arguments of all sizes arrive", arguments_of_all_sizes_arrive);
    claim("results of all sizes arrive", results_of_all_sizes_arrive);
    claim("long values of many parts arrive", long_values_of_many_parts_arrive);
    claim("what a save makes is kept until it is read", what_a_save_makes_is_kept);
    claim("many at once keep to their memory", many_at_once_keep_to_their_memory);
    claim("long blocks are copied once", long_blocks_are_copied_once);
    claim("what a view shows may change once the call has returned",
          what_a_view_shows_may_change_once_the_call_has_returned);
    claim("a function that never waits takes long arguments",
          a_function_that_never_waits_takes_long_arguments);
    claim("a view of some mebibytes is read in the message",
          a_view_of_some_mebibytes_is_read_in_the_message);
    claim("long views one after the other use the same pages",
          long_views_one_after_the_other_use_the_same_pages);
    claim("what is too long is refused here", what_is_too_long_is_refused_here);
    return check::verdict();
  });
}
