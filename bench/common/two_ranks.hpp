// SPDX-License-Identifier: Apache-2.0
//
// The main of a benchmark that rank 0 measures with the others, one batch at a time as the driver
// commands, or one alone.
#pragma once

#include <sched.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/command_channel.hpp"

namespace bench {

using figures = std::optional<std::vector<double>>;

/// Rank 0's part. `measure`: the figures of a command; nothing where there is no such operation or
/// size.
template <class Measure>
int lead(const std::string& name, const process_options& options, Measure measure) {
  const auto answer_to = [&](const command& next) -> figures {
    if (next.operation != "cpus") return measure(next);
    std::vector<double> cpus;
    for (int rank = 0; rank < sojourn::rank_count(); ++rank) {
      cpus.push_back(static_cast<double>(sojourn::rpc(rank, [] { return sched_getcpu(); }).get()));
    }
    return cpus;
  };
  if (options.commands.empty()) {
    const figures found = answer_to({options.operation, options.plan});
    if (!found) {
      std::fprintf(stderr, "%s: no operation %s of %llu bytes\n", name.c_str(),
                   options.operation.c_str(), static_cast<unsigned long long>(options.plan.bytes));
      return 2;
    }
    print_samples("sojourn", options, *found);
    return 0;
  }
  command_channel channel(options, 0);
  while (const auto next = channel.next()) {
    if (const figures found = answer_to(*next)) {
      channel.answer(*found);
    } else {
      channel.refuse(name + " does not know this operation or size");
    }
  }
  return 0;
}

template <class Measure>
int run_two_ranks(const std::string& name, int argc, char** argv, Measure measure) {
  const process_options options = parse_options(argc, argv, "hop");
  return sojourn::run(argc, argv, [&]() -> int {
    if (sojourn::rank_count() != 2) {
      if (sojourn::rank_me() == 0) {
        std::fprintf(stderr, "%s: needs 2 ranks (sojourn run -n 2)\n", name.c_str());
      }
      return 2;
    }
    const int status = sojourn::rank_me() == 0 ? lead(name, options, measure) : 0;
    sojourn::barrier();
    return status;
  });
}

}  // namespace bench
