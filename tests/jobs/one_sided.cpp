// SPDX-License-Identifier: Apache-2.0
// One-sided access: atomic words from all ranks at once, copies that are begun and waited for.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

template <class T>
global_ptr<T> of_rank_0(T value) {
  global_ptr<T> p;
  if (rank_me() == 0) p = make<T>(0, value);
  return broadcast(p);
}

void additions_of_all_ranks_add_up() {
  auto sum = of_rank_0(global_atomic<long>(5));
  auto real = of_rank_0(global_atomic<double>(0.5));
  auto small = of_rank_0(global_atomic<std::uint16_t>(0));
  for (int i = 0; i < 1000; ++i) {
    atomic_fetch_add(sum, 2);
    if (i % 10 == 0) atomic_fetch_add(real, 0.25);
    if (i % 10 == 0) atomic_fetch_add(small, std::uint16_t{1});
  }
  barrier();
  CHECK_EQUAL(atomic_load(sum), 5 + 2000L * rank_count());
  CHECK_EQUAL(atomic_load(real), 0.5 + 25.0 * rank_count());
  CHECK_EQUAL(atomic_load(small), 100 * rank_count());
  barrier();
}

void each_value_of_a_counter_goes_to_one_rank() {
  auto counter = of_rank_0(global_atomic<int>(0));
  std::vector<int> mine;
  for (int i = 0; i < 300; ++i) mine.push_back(atomic_fetch_add(counter, 1));
  CHECK(std::is_sorted(mine.begin(), mine.end()));
  const long sum = std::accumulate(mine.begin(), mine.end(), 0L);
  const long n = 300L * rank_count();
  CHECK_EQUAL(reduce(sum, std::plus<>{}), n * (n - 1) / 2);
}

void a_lock_made_of_compare_exchange_excludes() {
  auto lock = of_rank_0(global_atomic<int>(-1));
  auto twice = of_rank_0(std::array<long, 2>{});
  for (int i = 0; i < 30; ++i) {
    while (atomic_compare_exchange(lock, -1, rank_me()) != -1) yield();
    std::array<long, 2> seen = load(twice);
    CHECK_EQUAL(seen[0], seen[1]);
    ++seen[0];
    store(twice, seen);
    ++seen[1];
    store(twice, seen);
    CHECK_EQUAL(atomic_exchange(lock, -1), rank_me());
  }
  barrier();
  CHECK_EQUAL(load(twice)[1], 30L * rank_count());
  barrier();
}

void bits_and_extremes() {
  auto bits = of_rank_0(global_atomic<std::uint64_t>(~std::uint64_t{0}));
  auto flipped = of_rank_0(global_atomic<unsigned>(0));
  auto least = of_rank_0(global_atomic<int>(1000));
  auto most = of_rank_0(global_atomic<double>(-1));
  completions done;
  atomic_and(bits, ~(std::uint64_t{1} << rank_me()), done);
  atomic_xor(flipped, 1u << rank_me(), done);
  atomic_min(least, -rank_me(), done);
  atomic_max(most, rank_me() * 1.5, done);
  done.wait();
  barrier();
  CHECK_EQUAL(atomic_load(bits), ~((std::uint64_t{1} << rank_count()) - 1));
  CHECK_EQUAL(atomic_load(flipped), (1u << rank_count()) - 1);
  CHECK_EQUAL(atomic_load(least), 1 - rank_count());
  CHECK_EQUAL(atomic_load(most), (rank_count() - 1) * 1.5);
  CHECK_EQUAL(atomic_fetch_or(bits, 0u), ~((std::uint64_t{1} << rank_count()) - 1));
  barrier();
}

/// Many are under way at once; each finds what those before it have left, as a model says.
void operations_by_futures_are_done_in_order() {
  auto word = make<global_atomic<std::uint64_t>>(next(), global_atomic<std::uint64_t>(5));
  auto signed_word = make<global_atomic<long>>(next(), global_atomic<long>(0));
  std::uint64_t model = 5;
  long signed_model = 0;
  std::mt19937 random(static_cast<unsigned>(rank_me()) + 1);
  for (int round = 0; round < 20; ++round) {
    std::vector<future<std::uint64_t>> before;
    std::vector<std::uint64_t> expected;
    std::vector<future<long>> signed_before;
    std::vector<long> signed_expected;
    std::vector<future<void>> done;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t v = random() % 1000;
      const long s = static_cast<long>(v) - 500;
      const auto begun = [&](future<std::uint64_t> f, std::uint64_t after) {
        before.push_back(std::move(f));
        expected.push_back(model);
        model = after;
      };
      const auto signed_begun = [&](future<long> f, long after) {
        signed_before.push_back(std::move(f));
        signed_expected.push_back(signed_model);
        signed_model = after;
      };
      switch (random() % 12) {
        case 0:
          begun(atomic_load_async(word), model);
          break;
        case 1:
          done.push_back(atomic_store_async(word, v));
          model = v;
          break;
        case 2:
          begun(atomic_exchange_async(word, v), v);
          break;
        case 3:
          begun(atomic_compare_exchange_async(word, model, v), v);
          break;
        case 4:
          begun(atomic_compare_exchange_async(word, model + 1, v), model);
          break;
        case 5:
          begun(atomic_fetch_add_async(word, v), model + v);
          break;
        case 6:
          begun(atomic_fetch_sub_async(word, v), model - v);
          break;
        case 7:
          begun(atomic_fetch_and_async(word, v), model & v);
          break;
        case 8:
          begun(atomic_fetch_or_async(word, v), model | v);
          break;
        case 9:
          begun(atomic_fetch_xor_async(word, v), model ^ v);
          break;
        case 10:
          signed_begun(atomic_fetch_min_async(signed_word, s), std::min(signed_model, s));
          break;
        default:
          signed_begun(atomic_fetch_max_async(signed_word, s), std::max(signed_model, s));
          break;
      }
    }
    for (std::size_t i = 0; i < before.size(); ++i) CHECK_EQUAL(before[i].get(), expected[i]);
    for (std::size_t i = 0; i < signed_before.size(); ++i) {
      CHECK_EQUAL(signed_before[i].get(), signed_expected[i]);
    }
    for (auto& f : done) f.get();
    CHECK_EQUAL(atomic_load(word), model);
  }
  destroy(word);
  destroy(signed_word);

  auto real = make<global_atomic<double>>(next(), global_atomic<double>(1.5));
  CHECK_EQUAL(atomic_fetch_add_async(real, 2).get(), 1.5);
  CHECK_EQUAL(atomic_load_async(real).get(), 3.5);
  destroy(real);
  CHECK_THROWS(error, atomic_load_async(global_ptr<global_atomic<int>>()).get());
}

void what_is_begun_is_complete_after_the_wait() {
  constexpr std::size_t words = 500;
  auto table = make_array<std::uint64_t>(next(), words);
  completions done;
  for (std::size_t i = 0; i < words; ++i)
    store(table + static_cast<std::ptrdiff_t>(i), i * i, done);
  done.wait();
  auto heap = std::make_unique<std::array<std::uint64_t, words>>();
  std::array<std::uint64_t, words> stack{};
  static std::array<std::uint64_t, words> global;
  for (std::size_t i = 0; i < words; ++i) {
    const auto from = table + static_cast<std::ptrdiff_t>(i);
    load(from, (*heap)[i], done);
    load(from, stack[i], done);
    load(from, global[i], done);
  }
  done.wait();
  for (std::size_t i = 0; i < words; ++i) {
    CHECK_EQUAL((*heap)[i], i * i);
    CHECK_EQUAL(stack[i], i * i);
    CHECK_EQUAL(global[i], i * i);
  }
  destroy_array(table, words);
}

void random_copies_agree_with_a_model(bool bundled) {
  constexpr std::size_t bytes = 200'000;
  auto mine = make_array<unsigned char>(next(), bytes);
  std::vector<unsigned char> model(bytes);
  std::mt19937 random(static_cast<unsigned>(rank_me()) * 2 + bundled);
  std::vector<std::unique_ptr<std::vector<unsigned char>>> kept;
  auto some = [&](std::size_t most) { return random() % most; };
  std::unique_ptr<aggregated> bundles;
  if (bundled) bundles = std::make_unique<aggregated>();
  for (int round = 0; round < 30; ++round) {
    completions done;
    kept.clear();
    // Writes of one round are apart, and so may come in any order.
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t n = some(10) == 0 ? some(20'000) : some(3) == 0 ? 8 : some(64);
      const std::size_t size = std::min(n, bytes - at);
      if (some(3) != 0) {
        kept.push_back(std::make_unique<std::vector<unsigned char>>(size));
        for (auto& b : *kept.back()) b = static_cast<unsigned char>(random());
        std::copy(kept.back()->begin(), kept.back()->end(),
                  model.begin() + static_cast<std::ptrdiff_t>(at));
        put(std::span<unsigned char>(*kept.back()), mine + static_cast<std::ptrdiff_t>(at), done);
      }
      at += size + some(500);
    }
    done.wait();
    struct read {
      std::size_t at;
      std::vector<unsigned char> bytes;
    };
    std::vector<read> reads(50);
    for (read& r : reads) {
      r.at = some(bytes);
      r.bytes.resize(std::min(some(10) == 0 ? some(20'000) : some(64), bytes - r.at));
      get(mine + static_cast<std::ptrdiff_t>(r.at), std::span<unsigned char>(r.bytes), done);
    }
    done.wait();
    for (const read& r : reads) {
      CHECK(std::equal(r.bytes.begin(), r.bytes.end(),
                       model.begin() + static_cast<std::ptrdiff_t>(r.at)));
    }
  }
  destroy_array(mine, bytes);
  barrier();
}

void split_phase_additions_are_there_after_the_wait(bool bundled) {
  constexpr std::size_t words = 64;
  auto table = broadcast(rank_me() == 0 ? make_array<global_atomic<std::uint64_t>>(0, words)
                                        : global_ptr<global_atomic<std::uint64_t>>());
  std::unique_ptr<aggregated> bundles;
  if (bundled) bundles = std::make_unique<aggregated>();
  const counters before = counters_now();
  {
    completions done;
    for (std::size_t i = 0; i < 100 * words; ++i) {
      atomic_add(table + static_cast<std::ptrdiff_t>(i % words), 1, done);
    }
    done.wait();
    if (rank_count() == 1) {
      for (std::size_t i = 0; i < words; ++i) {
        CHECK_EQUAL(atomic_load(table + static_cast<std::ptrdiff_t>(i)), 100u);
      }
    }
  }
  const counters spent = counters_now() - before;
  if (bundled) CHECK(spent.requests_sent < 100);
  barrier();
  for (std::size_t i = 0; i < words; ++i) {
    CHECK_EQUAL(atomic_load(table + static_cast<std::ptrdiff_t>(i)),
                100u * static_cast<unsigned>(rank_count()));
  }
  barrier();
}

void futures_of_copies() {
  auto table = make_array<long>(next(), 10'000);
  std::vector<long> out(10'000);
  std::iota(out.begin(), out.end(), 7L);
  put_async(std::span<long>(out), table).get();
  std::vector<long> in(10'000);
  auto copied = get_async(table, std::span<long>(in));
  struct wide {
    std::array<long, 40> all;
  };
  auto large = make<wide>(next(), wide{});
  wide value{};
  for (std::size_t i = 0; i < value.all.size(); ++i) value.all[i] = static_cast<long>(i) - 3;
  auto stored = store_async(large, value);
  value.all[39] = 0;  // it was read before
  stored.get();
  CHECK_EQUAL(load_async(large).get().all[39], 36);
  destroy(large);
  auto one = load_async(table + 5);
  CHECK_EQUAL(one.get(), 12L);
  copied.get();
  CHECK(in == out);
  destroy_array(table, 10'000);
}

void many_fibers_have_reads_of_their_own() {
  auto word = make<long>(next(), 42L);
  // More than keep a stack of their own: the words they read into are moved while they wait.
  std::vector<future<long>> all;
  for (int i = 0; i < 1500; ++i) {
    all.push_back(future<void>::of_value().then([word] {
      long a = 0;
      long b = 0;
      completions done;
      load(word, a, done);
      load(word, b, done);
      done.wait();
      return a + b;
    }));
  }
  for (auto& f : all) CHECK_EQUAL(f.get(), 84L);
  destroy(word);
}

void each_byte_is_copied_once_at_each_side() {
  auto words = make_array<long>(next(), 100);
  static std::array<long, 100> in;
  auto round = [&] {
    completions done;
    for (std::ptrdiff_t i = 0; i < 100; ++i) store(words + i, long{i}, done);
    done.wait();
    for (std::ptrdiff_t i = 0; i < 100; ++i) load(words + i, in[static_cast<std::size_t>(i)], done);
    done.wait();
  };
  round();
  const counters before = counters_now();
  round();
  const counters spent = counters_now() - before;
  CHECK_EQUAL(spent.bulk_bytes, 1600u);
  if (rank_count() == 1 || spent.bulk_messages == 0) {
    CHECK_EQUAL(spent.bulk_copies, 1600u);
  } else {
    // Once at each side. 200 words, and one question after all those that were written.
    CHECK_EQUAL(spent.bulk_copies, 3200u);
    CHECK_EQUAL(spent.bulk_messages, 201u);
  }
  for (long i = 0; i < 100; ++i) CHECK_EQUAL(in[static_cast<std::size_t>(i)], i);
  destroy_array(words, 100);
}

void addresses_in_no_heap_are_refused() {
  completions done;
  long x = 0;
  CHECK_THROWS(error, load(global_ptr<long>(), x, done));
  CHECK_THROWS(error, store(global_ptr<long>::at(64), 1L, done));
  CHECK_THROWS(error, atomic_load(global_ptr<global_atomic<long>>()));
  CHECK_THROWS(error, atomic_add(global_ptr<global_atomic<long>>::at(8), 1, done));
  CHECK_THROWS(error, (void)load_async(global_ptr<long>()));
  done.wait();
}

void nothing_is_copied_from_nowhere_to_nowhere() {
  const global_ptr<long> nowhere;
  put(std::span<const long>(), nowhere);
  get(nowhere, std::span<long>());
  completions done;
  put(std::span<const long>(), nowhere, done);
  get(nowhere, std::span<long>(), done);
  done.wait();
  put_async(std::span<const long>(), nowhere).get();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("additions of all ranks add up", additions_of_all_ranks_add_up);
    check::claim("each value of a counter goes to one rank",
                 each_value_of_a_counter_goes_to_one_rank);
    check::claim("a lock made of compare_exchange excludes",
                 a_lock_made_of_compare_exchange_excludes);
    check::claim("bits and extremes", bits_and_extremes);
    check::claim("operations by futures are done in order",
                 operations_by_futures_are_done_in_order);
    check::claim("what is begun is complete after the wait",
                 what_is_begun_is_complete_after_the_wait);
    check::claim("random copies agree with a model",
                 [] { random_copies_agree_with_a_model(false); });
    check::claim("random copies agree with a model, bundled",
                 [] { random_copies_agree_with_a_model(true); });
    check::claim("split-phase additions are there after the wait",
                 [] { split_phase_additions_are_there_after_the_wait(false); });
    check::claim("split-phase additions are there after the wait, bundled",
                 [] { split_phase_additions_are_there_after_the_wait(true); });
    check::claim("futures of copies", futures_of_copies);
    check::claim("many fibers have reads of their own", many_fibers_have_reads_of_their_own);
    check::claim("each byte is copied once at each side", each_byte_is_copied_once_at_each_side);
    check::claim("addresses in no heap are refused", addresses_in_no_heap_are_refused);
    check::claim("nothing is copied from nowhere to nowhere",
                 nothing_is_copied_from_nowhere_to_nowhere);
    return check::verdict();
  });
}
