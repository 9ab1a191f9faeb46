// SPDX-License-Identifier: Apache-2.0
//
// A line chart as an SVG file: axes from zero, a tick where the eye wants one, a legend.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by rising x
};

struct chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<series> lines;
};

/// The chart as text. Requires: at least one point.
std::string to_svg(const chart& what);

/// Errors: failure when the file cannot be written.
void write_svg(const std::filesystem::path& file, const chart& what);

}  // namespace bench
