// SPDX-License-Identifier: Apache-2.0
#include "driver/svg_ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/svg_drawing.hpp"

namespace bench {
namespace {

constexpr double width = 940;
constexpr double words = 510;  // to the left of the axis
constexpr double left = words + 20;
constexpr double right = 130;  // for the figures
constexpr double top = 62;
constexpr double row = 20;
constexpr double small_row = 15;
constexpr double label_room = 34;
constexpr const char* kept = "#0060a8";
constexpr const char* missed = "#c04000";

/// A logarithmic axis from one of 1, 2, 5, 10… to another, with 1 between them.
struct axis {
  double begin;
  double end;
  double x(double value) const {
    return left + std::log(value / begin) / std::log(end / begin) * (width - left - right);
  }
};

std::vector<double> marks_between(double least, double most) {
  std::vector<double> marks;
  for (double power = 1e-6; power < 1e7; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double mark = factor * power;
      const double next = factor == 2 ? 2.5 * mark : 2 * mark;
      if (next > least * 1.0001 && (marks.empty() || marks.back() < most * 0.9999))
        marks.push_back(mark);
    }
  }
  return marks;
}

std::string axis_of(const axis& to, const std::vector<double>& marks, double bottom) {
  std::string svg;
  double labelled_to = 0;
  for (const double mark : marks) {
    const double x = to.x(mark);
    const bool is_one = std::abs(mark - 1) < 1e-3;
    svg += svg_rule(x, top - 8, x, bottom, is_one ? "black" : "#dddddd");
    // Labels that would run into one another are left out, and so is what would hide that of 1.
    const bool hides_one = !is_one && std::abs(x - to.x(1)) < label_room;
    if (x < labelled_to || hides_one) continue;
    svg += svg_label(x, top - 14, "middle", fmt::format("{:g}", mark));
    labelled_to = x + label_room;
  }
  return svg;
}

std::string drawing_of(const drawn_ratio& ratio, double y, const axis& to) {
  const char* colour = ratio.misses() ? missed : kept;
  std::string svg = svg_label(words, y + 4, "end", ratio.what);
  if (ratio.reach) {
    // An angle that is open towards where the figure is meant to lie.
    const double x = to.x(*ratio.reach);
    const double tip = ratio.at_least ? x + 4 : x - 4;
    svg += fmt::format(
        "<polyline points=\"{0:.1f},{1:.1f} {2:.1f},{1:.1f} {2:.1f},{3:.1f} {0:.1f},{3:.1f}\" "
        "fill=\"none\" "
        "stroke=\"#404040\"/>\n",
        tip, y - 6, x, y + 6);
  }
  svg += fmt::format(
      "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"{3}\" "
      "stroke-width=\"4\" "
      "stroke-opacity=\"0.45\"/>\n"
      "<circle cx=\"{4:.1f}\" cy=\"{1:.1f}\" r=\"4\" fill=\"{3}\"/>\n",
      to.x(ratio.q1), y, to.x(ratio.q3), colour, to.x(ratio.median));
  return svg +
         svg_label(width - right + 12, y + 4, "start",
                   fmt::format("{:.2g}{}", ratio.median,
                               ratio.reach ? fmt::format("  ({} {:g})", ratio.at_least ? "≥" : "≤",
                                                         *ratio.reach)
                                           : ""));
}

}  // namespace

std::string to_svg(const ratio_chart& what) {
  double least = 1;
  double most = 1;
  for (const drawn_ratio& ratio : what.ratios) {
    least = std::min({least, ratio.q1, ratio.reach.value_or(1)});
    most = std::max({most, ratio.q3, ratio.reach.value_or(1)});
  }
  const std::vector<double> marks = marks_between(least, most * 1.0001);
  const axis to{marks.front(), marks.back()};
  const double bottom = top + static_cast<double>(what.ratios.size()) * row;
  const double height = bottom + 14 + static_cast<double>(what.below.size()) * small_row;
  std::string svg = svg_begin(width, height, what.title);
  svg += axis_of(to, marks, bottom);
  double y = top + row / 2;
  for (const drawn_ratio& ratio : what.ratios) {
    svg += drawing_of(ratio, y, to);
    y += row;
  }
  y = bottom + small_row;
  for (const std::string& line : what.below) {
    svg += fmt::format("<text x=\"20\" y=\"{:.1f}\" font-size=\"11\" fill=\"#404040\">{}</text>\n",
                       y, svg_escaped(line));
    y += small_row;
  }
  return svg + "</svg>\n";
}

void write_svg(const std::filesystem::path& file, const ratio_chart& what) {
  write_text(file, to_svg(what));
}

}  // namespace bench
