// SPDX-License-Identifier: Apache-2.0
//
// Loops of calls that never leave this rank, for counting their instructions under callgrind.
//
//   bench_calls --operation KIND --iterations N
//
//   method         plain call of a method          call_rpc, call_migrate   the same through
//                                                  global_ptr::call on an object that is here
//                                                  async                    the same through
//                                                  global_ptr::async
//   const_method   plain call of a const method    read                     the same on the version
//                                                  of a replicated object that is here
//   function       plain call of a function        activate                 the same as an
//                                                  activation
//
// A call's cost is what N more iterations cost, divided by N. No loop is inlined, and neither are
// the callees, so that each pair differs in the call alone.

#include <cstdint>
#include <string>

#include <sojourn/sojourn.hpp>

#include "common/command_channel.hpp"

namespace {

using namespace sojourn;

#if defined(__GNUC__) && !defined(__clang__)
#define BENCH_OPAQUE [[gnu::noipa]]  // No inlining, no cloning, no knowledge of what it clobbers.
#else
#define BENCH_OPAQUE [[gnu::noinline]]
#endif

struct accumulator {
  std::uint64_t sum = 0;
  BENCH_OPAQUE std::uint64_t add(std::uint64_t value) { return sum += value; }
  BENCH_OPAQUE std::uint64_t with(std::uint64_t value) const { return sum + value; }
};

BENCH_OPAQUE std::uint64_t increment(std::uint64_t value) { return value + 1; }

BENCH_OPAQUE std::uint64_t loop_method(accumulator* object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object->add(i);
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_call_rpc(global_ptr<accumulator> object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object.call<&accumulator::add>(via::rpc, i);
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_call_migrate(global_ptr<accumulator> object,
                                             std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i)
    sum += object.call<&accumulator::add>(via::migrate, i);
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_async(global_ptr<accumulator> object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object.async<&accumulator::add>(i).get();
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_const_method(const accumulator* object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object->with(i);
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_read(replicated<accumulator> object, std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += object.read<&accumulator::with>(i);
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_function(std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += increment(i);
  return sum;
}

BENCH_OPAQUE std::uint64_t loop_activate(std::uint64_t iterations) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) sum += activate(increment, i);
  return sum;
}

/// Returns false when there is no such loop.
bool run_loop(const std::string& kind, std::uint64_t iterations, std::uint64_t& sum) {
  const auto object = make<accumulator>(rank_me());
  const auto versions = make_replicated<accumulator>();
  if (kind == "method")
    sum = loop_method(object.local(), iterations);
  else if (kind == "call_rpc")
    sum = loop_call_rpc(object, iterations);
  else if (kind == "call_migrate")
    sum = loop_call_migrate(object, iterations);
  else if (kind == "async")
    sum = loop_async(object, iterations);
  else if (kind == "const_method")
    sum = loop_const_method(object.local(), iterations);
  else if (kind == "read")
    sum = loop_read(versions, iterations);
  else if (kind == "function")
    sum = loop_function(iterations);
  else if (kind == "activate")
    sum = loop_activate(iterations);
  else
    return false;
  destroy(object);
  versions.destroy();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "method");
  return run(argc, argv, [&]() -> int {
    std::uint64_t sum = 0;
    if (!run_loop(options.operation, options.plan.iterations, sum)) {
      std::fprintf(stderr, "bench_calls: no operation %s\n", options.operation.c_str());
      return 2;
    }
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
    return 0;
  });
}
