// SPDX-License-Identifier: Apache-2.0
#include "driver/svg_drawing.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "driver/process.hpp"

namespace bench {

std::string svg_begin(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
      "height=\"{1:g}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"white\"/>\n"
      "<text x=\"{2:g}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{3}</text>\n",
      width, height, width / 2, svg_escaped(title));
}

std::string svg_upright(double x, double y, const std::string& text) {
  return fmt::format(
      "<text transform=\"translate({:g} {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      x, y, svg_escaped(text));
}

std::string svg_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     svg_escaped(text));
}

std::string svg_rule(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

double tick_step(double span, int steps_max) {
  if (span <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(span / steps_max)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (span / (factor * power) <= steps_max) return factor * power;
  return 10 * power;
}

void check_writable(const std::filesystem::path& file) {
  const bool was_there = std::filesystem::exists(file);
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  if (!std::ofstream(file, std::ios::app)) throw failure("cannot write " + file.string());
  if (!was_there) std::filesystem::remove(file, failed);
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  std::ofstream out(file);
  out << text;
  out.flush();
  if (!out) throw failure("cannot write " + file.string());
}

}  // namespace bench
