// SPDX-License-Identifier: Apache-2.0
//
// The programs of common/fork_kernels.hpp as plain C++, without any of Sojourn's flags:
//
//   tree.KERNEL   the same source with the forks removed: the same call tree
//   hand.KERNEL   as one would write it, for the compiler to do with what it likes
#include <string>

#include "common/fork_kernels.hpp"
#include "peers/kernel_peer.hpp"

namespace {

using namespace bench::kernels;

std::optional<std::vector<double>> measure(std::string_view operation,
                                           const bench::batch_plan& plan) {
  const std::string_view kernel = operation.substr(std::min<std::size_t>(5, operation.size()));
  if (operation == "tree.forward") {
    return time_way<plain>("list", plan, [](const node* n) { return forward<plain>(n, 0); });
  }
  if (operation.starts_with("tree.")) return time_way<plain>(kernel, plan);
  if (operation.starts_with("hand.")) {
    return time_one(kernel, plan, by_hand::fib, by_hand::fib, by_hand::tak, by_hand::quicksort,
                    by_hand::queens, by_hand::traverse);
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_kernel_peer("plain C++", "tree.fib", argc, argv, measure);
}
