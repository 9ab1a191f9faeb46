// SPDX-License-Identifier: Apache-2.0
//
// Starting and joining a boost::fiber that does nothing, on pooled stacks:
// peer_boost_fiber --operation spawn_join.
#include <boost/fiber/all.hpp>

#include "common/command_channel.hpp"

namespace {

std::vector<double> time_spawns(const bench::batch_plan& plan) {
  boost::fibers::pooled_fixedsize_stack stacks(256 * 1024);
  return bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      boost::fibers::fiber(std::allocator_arg, stacks, [] {}).join();
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "spawn_join");
  bench::pin_to_cpu(options.cpus.front());
  if (options.commands.empty()) {
    bench::print_samples("boost::fiber", options, time_spawns(options.plan));
    return 0;
  }
  bench::command_channel channel(options, 0);
  while (auto next = channel.next()) channel.answer(time_spawns(next->plan));
  return 0;
}
