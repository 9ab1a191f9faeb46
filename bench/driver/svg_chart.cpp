// SPDX-License-Identifier: Apache-2.0
#include "driver/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "driver/svg_drawing.hpp"

namespace bench {
namespace {

constexpr double width = 640;
constexpr double height = 400;
constexpr double left = 80;
constexpr double right = 20;
constexpr double top = 50;
constexpr double bottom = 60;
constexpr int ticks_max = 6;

/// Distinguishable without colour, too: each line has its own dashes and marker size.
struct look {
  std::string_view colour;
  std::string_view dashes;
};
constexpr std::array<look, 4> looks{
    {{"#0060a8", "none"}, {"#c04000", "7 4"}, {"#207040", "2 4"}, {"#703080", "10 3 2 3"}}};

/// Maps values of both axes, which start at zero, to the drawing.
struct scale {
  double x_end = 1;
  double y_end = 1;
  double x(double value) const { return left + value / x_end * (width - left - right); }
  double y(double value) const { return height - bottom - value / y_end * (height - top - bottom); }
};

scale scale_of(const chart& what, double& x_step, double& y_step) {
  double x_most = 0;
  double y_most = 0;
  for (const series& line : what.lines) {
    for (const auto& [x, y] : line.points) {
      x_most = std::max(x_most, x);
      y_most = std::max(y_most, y);
    }
  }
  x_step = tick_step(x_most, ticks_max);
  y_step = tick_step(y_most, ticks_max);
  return {std::ceil(x_most / x_step) * x_step, std::ceil(y_most / y_step) * y_step};
}

std::string axes(const chart& what, const scale& to, double x_step, double y_step) {
  std::string svg;
  for (double y = 0; y <= to.y_end * 1.0001; y += y_step) {
    svg += svg_rule(left, to.y(y), width - right, to.y(y), y == 0 ? "black" : "#dddddd");
    svg += svg_label(left - 8, to.y(y) + 4, "end", fmt::format("{:g}", y));
  }
  for (double x = 0; x <= to.x_end * 1.0001; x += x_step) {
    svg += svg_rule(to.x(x), to.y(0), to.x(x), to.y(0) + 5, "black");
    svg += svg_label(to.x(x), to.y(0) + 19, "middle", fmt::format("{:g}", x));
  }
  svg += svg_rule(left, top, left, to.y(0), "black");
  svg += svg_label((left + width - right) / 2, height - 18, "middle", what.x_label);
  svg += svg_upright(20, (top + height - bottom) / 2, what.y_label);
  return svg;
}

std::string curve(const series& line, const look& how, const scale& to) {
  std::string points;
  std::string dots;
  for (const auto& [x, y] : line.points) {
    points += fmt::format("{:.1f},{:.1f} ", to.x(x), to.y(y));
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", to.x(x),
                        to.y(y), how.colour);
  }
  return fmt::format(
             "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
             "stroke-dasharray=\"{}\"/>\n",
             points, how.colour, how.dashes) +
         dots;
}

std::string legend(const chart& what) {
  std::string svg;
  double x = left + 10;
  for (std::size_t i = 0; i < what.lines.size(); ++i) {
    const look& how = looks[i % looks.size()];
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"40\" x2=\"{:.1f}\" y2=\"40\" stroke=\"{}\" stroke-width=\"2\" "
        "stroke-dasharray=\"{}\"/>\n",
        x, x + 30, how.colour, how.dashes);
    svg += svg_label(x + 36, 44, "start", what.lines[i].name);
    x += 60 + 8 * static_cast<double>(what.lines[i].name.size());
  }
  return svg;
}

}  // namespace

std::string to_svg(const chart& what) {
  double x_step = 1;
  double y_step = 1;
  const scale to = scale_of(what, x_step, y_step);
  std::string svg = svg_begin(width, height, what.title);
  svg += axes(what, to, x_step, y_step);
  for (std::size_t i = 0; i < what.lines.size(); ++i)
    svg += curve(what.lines[i], looks[i % looks.size()], to);
  svg += legend(what);
  return svg + "</svg>\n";
}

void write_svg(const std::filesystem::path& file, const chart& what) {
  write_text(file, to_svg(what));
}

}  // namespace bench
