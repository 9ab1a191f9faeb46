// SPDX-License-Identifier: Apache-2.0
// The command line that all forms of the program have, and what they say in the end.
#pragma once

#include <fmt/format.h>

#include <compiled_json.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"
#include "lu/kernel/check.hpp"

namespace apps::lu {

struct options {
  std::size_t size = 512;
  std::size_t block = 16;
  std::uint64_t seed = 1;
  int repeats = 5;

  void add_to(command_line& app) {
    app.add("--size", size, "Rows and columns of the matrix, a multiple of --block")
        .between(4, 16'384);
    app.add("--block", block, "Rows and columns of a block, a multiple of 4").between(4, 1'024);
    app.add("--repeats", repeats, "Factorizations; the one with the median time is reported")
        .between(1, 10'000);
    app.add("--seed", seed, "Seed of the random matrix, which has a large diagonal");
  }
  /// For `ranks` processors. Throws refusal.
  layout shape(int ranks) const {
    const layout l{.size = size, .block = block, .processors = ranks};
    if (const auto wrong = l.fault()) throw refusal(2, *wrong);
    return l;
  }
};

/// What a run came to.
struct report {
  layout shape;
  std::string form;
  std::string exchange;
  int repeats = 0;
  double seconds = 0;
  double fastest = 0;
  time_split split{};
  residual found{};

  double gflops() const {
    const auto n = static_cast<double>(shape.size);
    return 2e-9 / 3 * n * n * n / seconds;
  }
  std::string text() const {
    return fmt::format(
        "{} x {} in blocks of {} on {} x {} ranks, {}, {}: {:.3f} ms (fastest {:.3f}), {:.2f} "
        "GFLOP/s\n{}{}\n",
        shape.size, shape.size, shape.block, shape.rows(), shape.columns(), form, exchange,
        seconds * 1e3, fastest * 1e3, gflops(), to_text(split), to_text(found));
  }
  nlohmann::ordered_json json() const {
    return {{"size", shape.size},        {"block", shape.block},
            {"ranks", shape.processors}, {"form", form},
            {"exchange", exchange},      {"repeats", repeats},
            {"seconds", seconds},        {"fastest_seconds", fastest},
            {"gflops", gflops()},        {"split", to_json(split)},
            {"residual", found.value},   {"residual_is_of_whole_matrix", found.is_whole},
            {"residual_bound", bound}};
  }
};

}  // namespace apps::lu
