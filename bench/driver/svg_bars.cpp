// SPDX-License-Identifier: Apache-2.0
#include "driver/svg_bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "driver/svg_drawing.hpp"

namespace bench {
namespace {

constexpr double height = 420;
constexpr double left = 70;
constexpr double right = 20;
constexpr double top = 70;
constexpr double bottom = 60;
constexpr double bar_width = 18;
constexpr double bar_gap = 3;
constexpr double group_gap = 20;
constexpr int ticks_max = 6;

/// From dark to light and back, so that neighbours differ without colour, too.
constexpr std::array<std::string_view, 6> colours{"#0060a8", "#f0b060", "#207040",
                                                  "#e8e8a0", "#703080", "#c8c8c8"};

double height_of(const bar& b) { return std::accumulate(b.parts.begin(), b.parts.end(), 0.0); }

double width_of(const bar_group& g) {
  return static_cast<double>(g.bars.size()) * (bar_width + bar_gap) - bar_gap;
}

/// Maps values to the drawing.
struct scale {
  double end = 1;
  double y(double value) const { return height - bottom - value / end * (height - top - bottom); }
};

std::string rectangle(double x, double y, double w, double h, std::string_view colour) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"black\" stroke-width=\"0.4\"/>\n",
      x, y, w, h, colour);
}

std::string small_label(double x, double y, const std::string& text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"8\">{}</text>\n", x, y,
      svg_escaped(text));
}

std::string drawing_of(const bar& b, double x, const scale& to) {
  std::string svg;
  double below = 0;
  for (std::size_t i = 0; i < b.parts.size(); ++i) {
    const double above = below + b.parts[i];
    svg += rectangle(x, to.y(above), bar_width, to.y(below) - to.y(above),
                     colours[i % colours.size()]);
    below = above;
  }
  svg += small_label(x + bar_width / 2, to.y(0) + 12, b.name);
  if (!b.above.empty()) svg += small_label(x + bar_width / 2, to.y(below) - 3, b.above);
  return svg;
}

std::string legend(const bar_chart& what) {
  std::string svg;
  double x = left;
  for (std::size_t i = 0; i < what.parts.size(); ++i) {
    svg += rectangle(x, 36, 12, 12, colours[i % colours.size()]);
    svg += svg_label(x + 17, 46, "start", what.parts[i]);
    x += 36 + 7 * static_cast<double>(what.parts[i].size());
  }
  return svg;
}

}  // namespace

std::string to_svg(const bar_chart& what) {
  double width = left + right;
  double most = 0;
  for (const bar_group& g : what.groups) {
    width += width_of(g) + group_gap;
    for (const bar& b : g.bars) most = std::max(most, height_of(b));
  }
  const double step = tick_step(most, ticks_max);
  const scale to{std::max(1.0, std::ceil(most / step - 1e-9)) * step};
  std::string svg = svg_begin(width, height, what.title);
  svg += svg_upright(20, (top + height - bottom) / 2, what.y_label);
  for (double y = 0; y <= to.end * 1.0001; y += step) {
    svg += svg_rule(left, to.y(y), width - right, to.y(y), y == 0 ? "black" : "#dddddd");
    svg += svg_label(left - 8, to.y(y) + 4, "end", fmt::format("{:g}", y));
  }
  double x = left + group_gap / 2;
  for (const bar_group& g : what.groups) {
    svg += svg_label(x + width_of(g) / 2, to.y(0) + 32, "middle", g.name);
    for (std::size_t i = 0; i < g.bars.size(); ++i)
      svg += drawing_of(g.bars[i], x + static_cast<double>(i) * (bar_width + bar_gap), to);
    x += width_of(g) + group_gap;
  }
  return svg + legend(what) + "</svg>\n";
}

void write_svg(const std::filesystem::path& file, const bar_chart& what) {
  write_text(file, to_svg(what));
}

}  // namespace bench
