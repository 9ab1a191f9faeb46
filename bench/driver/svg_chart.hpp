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

// What drawings are made of.

/// Text as XML has it.
std::string svg_escaped(const std::string& text);
/// `anchor`: start, middle or end.
std::string svg_label(double x, double y, const char* anchor, const std::string& text);
std::string svg_rule(double x1, double y1, double x2, double y2, const char* colour);

/// Errors: failure when the file cannot be written.
void write_text(const std::filesystem::path& file, const std::string& text);

/// The least of 1, 2 or 5 times a power of ten that cuts `span` into at most `steps_max` parts.
double tick_step(double span, int steps_max);

}  // namespace bench
