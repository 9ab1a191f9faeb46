// SPDX-License-Identifier: Apache-2.0
//
// Ratios, one below the other, as an SVG file: each a dot with its quartiles on a logarithmic axis,
// with the value that it is meant to reach.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct drawn_ratio {
  std::string what;
  double median;
  double q1;
  double q3;
  std::optional<double> reach;
  bool at_least = false;  ///< `reach` is meant from below.

  bool misses() const { return reach && (at_least ? median < *reach : median > *reach); }
};

struct ratio_chart {
  std::string title;
  std::vector<std::string> below;  ///< Lines of small print: the machine, the command.
  std::vector<drawn_ratio> ratios;
};

/// Requires: at least one ratio, all of them positive.
std::string to_svg(const ratio_chart& what);

/// Errors: failure when the file cannot be written.
void write_svg(const std::filesystem::path& file, const ratio_chart& what);

}  // namespace bench
