// SPDX-License-Identifier: Apache-2.0
//
// A boost::context::fiber made on a pooled stack, run to its end and destroyed, which adds one to a
// number: peer_boost_context --operation child.
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <optional>

#include "peers/kernel_peer.hpp"

namespace {

namespace context = boost::context;

std::optional<std::vector<double>> measure(std::string_view operation,
                                           const bench::batch_plan& plan) {
  if (operation != "child") return std::nullopt;
  context::pooled_fixedsize_stack stacks(256 * 1024);
  return bench::time_batches(plan, [&](std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      context::fiber child(std::allocator_arg, stacks, [&sum, i](context::fiber&& caller) {
        sum += i + 1;
        return std::move(caller);
      });
      std::move(child).resume();
    }
    bench::touch(&sum);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_kernel_peer("boost::context", "child", argc, argv, measure);
}
