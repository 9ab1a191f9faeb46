// SPDX-License-Identifier: Apache-2.0
//
// The main of a peer that runs programs of common/fork_kernels.hpp on one core.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_channel.hpp"

namespace bench {

/// `measure(operation, plan)`: its figures; nothing where there is no such operation.
template <class Measure>
int run_kernel_peer(const char* name, std::string_view operation, int argc, char** argv,
                    Measure measure) {
  const process_options options = parse_options(argc, argv, operation);
  pin_to_cpu(options.cpus.front());
  try {
    if (options.commands.empty()) {
      const auto found = measure(options.operation, options.plan);
      if (!found) {
        std::fprintf(stderr, "%s: no operation %s\n", argv[0], options.operation.c_str());
        return 2;
      }
      print_samples(name, options, *found);
      return 0;
    }
    command_channel channel(options, 0);
    while (const auto next = channel.next()) {
      if (const auto found = measure(next->operation, next->plan)) {
        channel.answer(*found);
      } else {
        channel.refuse("there is no operation " + next->operation);
      }
    }
    return 0;
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "%s: %s\n", argv[0], wrong.what());
    return 1;
  }
}

}  // namespace bench
