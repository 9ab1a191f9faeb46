// SPDX-License-Identifier: Apache-2.0
//
// What the drawings of SVG files are made of. Each function returns a part of such a file.
#pragma once

#include <filesystem>
#include <string>

namespace bench {

/// The beginning of a file: its size, and a title in the middle above.
std::string svg_begin(double width, double height, const std::string& title);
/// Text as XML has it.
std::string svg_escaped(const std::string& text);
/// `anchor`: start, middle or end.
std::string svg_label(double x, double y, const char* anchor, const std::string& text);
/// Text that reads upwards, with its middle there.
std::string svg_upright(double x, double y, const std::string& text);
std::string svg_rule(double x1, double y1, double x2, double y2, const char* colour);

/// The least of 1, 2 or 5 times a power of ten that cuts `span` into at most `steps_max` parts.
double tick_step(double span, int steps_max);

/// Tells before minutes of measurement whether the file can be written; changes nothing, but makes
/// its folder. Errors: failure when it cannot.
void check_writable(const std::filesystem::path& file);

/// Errors: failure when the file cannot be written.
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace bench
