// SPDX-License-Identifier: Apache-2.0
// The command line that all forms of the program have, and what they say in the end.
#pragma once

#include <fmt/format.h>

#include <compiled_json.hpp>
#include <cstdint>
#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"
#include "fft/kernel/check.hpp"

namespace apps::fft {

struct options {
  int log2_points = 20;
  std::uint64_t seed = 1;
  int repeats = 5;

  void add_to(command_line& app) {
    app.add("--log2", log2_points, "Logarithm of the number of points: 20 is 1M").between(1, 28);
    app.add("--repeats", repeats, "Transforms; the one with the median time is reported")
        .between(1, 10'000);
    app.add("--seed", seed, "Seed of the random signal");
  }
  /// For `ranks` processors. Throws refusal.
  layout shape(int ranks) const {
    const layout l{.log2_points = log2_points, .processors = ranks};
    if (const auto wrong = l.fault()) throw refusal(2, *wrong);
    return l;
  }
};

/// What a run came to.
struct report {
  layout shape;
  std::string form;
  int repeats = 0;
  double seconds = 0;
  double fastest = 0;
  time_split split{};
  errors found{};

  double gflops() const {
    return 5e-9 * static_cast<double>(shape.points()) * shape.log2_points / seconds;
  }
  std::string text() const {
    return fmt::format(
        "{} points on {} ranks, {}: {:.3f} ms (fastest {:.3f}), {:.2f} GFLOP/s\n{}{}\n",
        shape.points(), shape.processors, form, seconds * 1e3, fastest * 1e3, gflops(),
        to_text(split), to_text(shape, found));
  }
  nlohmann::ordered_json json() const {
    nlohmann::ordered_json j = {{"points", shape.points()},
                                {"ranks", shape.processors},
                                {"form", form},
                                {"repeats", repeats},
                                {"seconds", seconds},
                                {"fastest_seconds", fastest},
                                {"gflops", gflops()},
                                {"split", to_json(split)},
                                {"error_bound", bound(shape)},
                                {"error_inverse", found.inverse},
                                {"error_energy", found.energy},
                                {"error_bins", found.bins}};
    if (found.fftw) j["error_fftw"] = *found.fftw;
    return j;
  }
};

}  // namespace apps::fft
