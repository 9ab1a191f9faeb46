// SPDX-License-Identifier: Apache-2.0
//
// Starting and joining a boost::fiber that adds one to a number, on pooled stacks:
//
//   post       launch::post, the default: it is made ready, and runs when its starter waits
//   dispatch   launch::dispatch: it runs at once
#include <boost/fiber/all.hpp>

#include "peers/kernel_peer.hpp"

namespace {

std::vector<double> time_spawns(boost::fibers::launch how, const bench::batch_plan& plan) {
  boost::fibers::pooled_fixedsize_stack stacks(256 * 1024);
  return bench::time_batches(plan, [&](std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      boost::fibers::fiber(how, std::allocator_arg, stacks, [&sum] { ++sum; }).join();
    }
    if (sum != count) throw std::runtime_error("not every fiber has run");
  });
}

std::optional<std::vector<double>> measure(std::string_view operation,
                                           const bench::batch_plan& plan) {
  if (operation == "post") return time_spawns(boost::fibers::launch::post, plan);
  if (operation == "dispatch") return time_spawns(boost::fibers::launch::dispatch, plan);
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_kernel_peer("boost::fiber", "post", argc, argv, measure);
}
