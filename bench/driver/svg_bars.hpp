// SPDX-License-Identifier: Apache-2.0
//
// Bars in groups, each a stack of parts, as an SVG file: the charts of times and of switches in
// papers about shared memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace bench {

struct bar {
  std::string name;           ///< Below it.
  std::vector<double> parts;  ///< From below, as bar_chart::parts names them.
  std::string above{};        ///< On top of it.
};

struct bar_group {
  std::string name;
  std::vector<bar> bars;
};

struct bar_chart {
  std::string title;
  std::string y_label;
  std::vector<std::string> parts;
  std::vector<bar_group> groups;
};

/// Requires: at least one bar; as many parts in each as the chart has.
std::string to_svg(const bar_chart& what);

/// Errors: failure when the file cannot be written.
void write_svg(const std::filesystem::path& file, const bar_chart& what);

}  // namespace bench
