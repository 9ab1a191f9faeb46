// SPDX-License-Identifier: Apache-2.0
//
// Starting and joining a thread of the system that does nothing: peer_pthread --operation
// spawn_join.
#include <pthread.h>

#include "common/command_channel.hpp"

namespace {

std::vector<double> time_spawns(const bench::batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      pthread_t thread;
      pthread_create(&thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
      pthread_join(thread, nullptr);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "spawn_join");
  bench::pin_to_cpu(options.cpus.front());
  if (options.commands.empty()) {
    bench::print_samples("pthread", options, time_spawns(options.plan));
    return 0;
  }
  bench::command_channel channel(options, 0);
  while (auto next = channel.next()) channel.answer(time_spawns(next->plan));
  return 0;
}
