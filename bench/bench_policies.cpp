// SPDX-License-Identifier: Apache-2.0
//
// What an access via::cache or via::fetch costs: the first one to each of many objects of 64 bytes,
// which brings a copy or the object, beside a call; and one that finds its copy, beside one to an
// object of this rank. Likewise reads of a replicated object, and calls that choose their way.
//
//   bench_policies --operation KIND --iterations N
//
//   rpc            each object of the other rank is read once, via::rpc
//   cache_miss     the same via::cache: each access brings a copy
//   fetch          the same via::fetch: each access brings the object
//   cache_hit      one object of the other rank, of which there is a copy here, is read N times,
//                  between counting_begins() and counting_ends()
//   local          the same of an object of this rank
//   replicated_hit a replicated object is read N times, likewise
//   plain          the same of an object without Sojourn
//   said_rpc       an object of the other rank, which stays there, is changed N times via::rpc,
//   automatic_rpc  or via::automatic, which calls it there, likewise

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/timing.hpp"
#include "common/two_ranks.hpp"

namespace {

using namespace sojourn;

#if defined(__GNUC__) && !defined(__clang__)
#define BENCH_OPAQUE [[gnu::noipa]]  // No inlining, no cloning, no knowledge of what it clobbers.
#else
#define BENCH_OPAQUE [[gnu::noinline]]
#endif

class record {
 public:
  BENCH_OPAQUE std::uint64_t first() const { return words_[0]; }
  void fill(std::uint64_t value) { words_.fill(value); }

 private:
  std::array<std::uint64_t, 8> words_{};
};
static_assert(sizeof(record) == 64);

/// The driver has callgrind count from the entry of one to the entry of the other.
extern "C" BENCH_OPAQUE void counting_begins() { bench::touch(nullptr); }
extern "C" BENCH_OPAQUE void counting_ends() { bench::touch(nullptr); }

/// Fresh objects on rank 1, of which no copy has ever been given.
class records {
 public:
  explicit records(std::uint64_t count) : count_(count), all_(make_array<record>(1, count)) {
    rpc(
        1,
        [](global_ptr<record> all, std::uint64_t n) {
          for (std::uint64_t i = 0; i < n; ++i)
            (all + static_cast<std::ptrdiff_t>(i)).call<&record::fill>(i);
        },
        all_, count_)
        .get();
  }
  records(const records&) = delete;
  records& operator=(const records&) = delete;
  ~records() { destroy_array(all_, count_); }

  global_ptr<record> operator[](std::uint64_t i) const {
    return all_ + static_cast<std::ptrdiff_t>(i);
  }

 private:
  std::uint64_t count_;
  global_ptr<record> all_;
};

std::vector<double> time_reads(const bench::batch_plan& plan, via how) {
  const records all(plan.warm_up() + plan.repeats * plan.iterations);
  std::uint64_t next = 0;
  std::uint64_t wrong = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (const std::uint64_t end = next + count; next < end; ++next) {
      if (all[next].call<&record::first>(how) != next) ++wrong;
    }
  });
  if (wrong != 0) throw std::runtime_error("a read found what is not there");
  return found;
}

/// `body` does so many operations.
template <class Body>
bench::figures time_marked(std::uint64_t iterations, Body body) {
  counting_begins();
  const std::uint64_t start = bench::clock_ns();
  body();
  const std::uint64_t end = bench::clock_ns();
  counting_ends();
  return std::vector{static_cast<double>(end - start) / static_cast<double>(iterations)};
}

BENCH_OPAQUE std::uint64_t read_cached(global_ptr<record> object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object.call<&record::first>(via::cache);
  return sum;
}

bench::figures read_again(std::uint64_t iterations, rank_t owner) {
  const global_ptr<record> object = make<record>(owner);
  object.call<&record::fill>(via::rpc, std::uint64_t{7});
  object.call<&record::first>(via::cache);  // now there is a copy
  read_cached(object, 10);
  std::uint64_t sum = 0;
  const bench::figures found =
      time_marked(iterations, [&] { sum = read_cached(object, iterations); });
  destroy(object);
  if (sum != 7 * iterations) throw std::runtime_error("a read of a copy found what is not there");
  return found;
}

BENCH_OPAQUE std::uint64_t read_version(replicated<record> object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object.read<&record::first>();
  return sum;
}
BENCH_OPAQUE std::uint64_t read_own(const record& object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object.first();
  return sum;
}
bench::figures read_replicated(std::uint64_t iterations) {
  const replicated<record> object = make_replicated<record>();
  std::uint64_t sum = read_version(object, 10);
  const bench::figures found =
      time_marked(iterations, [&] { sum += read_version(object, iterations); });
  object.destroy();
  if (sum != 0) throw std::runtime_error("a read found what is not there");
  return found;
}
bench::figures read_plain(std::uint64_t iterations) {
  const record object;
  std::uint64_t sum = 0;
  const bench::figures found =
      time_marked(iterations, [&] { sum += read_own(object, iterations); });
  if (sum != 0) throw std::runtime_error("a read found what is not there");
  return found;
}

BENCH_OPAQUE void change(global_ptr<record> object, std::uint64_t times, via how) {
  for (std::uint64_t i = 0; i < times; ++i) object.call<&record::fill>(how, std::uint64_t{7});
}
bench::figures change_there(std::uint64_t iterations, via how) {
  constexpr std::uint64_t settled = 2000;
  const global_ptr<record> object = make<record>(1);
  fix(object);
  change(object, settled, how);
  const bench::figures found = time_marked(iterations, [&] { change(object, iterations, how); });
  unfix(object);
  destroy(object);
  return found;
}

bench::figures measure(const bench::command& next) {
  if (next.operation == "rpc") return time_reads(next.plan, via::rpc);
  if (next.operation == "cache_miss") return time_reads(next.plan, via::cache);
  if (next.operation == "fetch") return time_reads(next.plan, via::fetch);
  if (next.operation == "cache_hit") return read_again(next.plan.iterations, 1);
  if (next.operation == "local") return read_again(next.plan.iterations, 0);
  if (next.operation == "replicated_hit") return read_replicated(next.plan.iterations);
  if (next.operation == "plain") return read_plain(next.plan.iterations);
  if (next.operation == "said_rpc") return change_there(next.plan.iterations, via::rpc);
  if (next.operation == "automatic_rpc") return change_there(next.plan.iterations, via::automatic);
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_two_ranks("bench_policies", argc, argv, measure);
}
