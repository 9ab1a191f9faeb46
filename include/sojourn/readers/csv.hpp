// SPDX-License-Identifier: Apache-2.0
// The rows of a table of comma-separated values (RFC 4180), each on one rank.
//
//     csv flights("flights.csv");
//     const std::size_t distance = flights.column("distance");
//     for (const csv_row& flight : flights) miles += flight.as<long>(distance);
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sojourn/errors.hpp"
#include "sojourn/readers/text.hpp"
#include "sojourn/team.hpp"

namespace sojourn {

struct csv_options {
  bool header = true;    ///< The first row has the names of the columns.
  char separator = ',';  ///< Between fields.
  /// Quoted fields may have line ends in them. To know whether its part begins within quotes, each
  /// member then counts those of all that is before it: it reads the file up to the end of its
  /// part.
  bool lines_in_quotes = false;
};

/// A row of a table: right until the loop goes on to the next one.
class csv_row {
 public:
  csv_row() = default;
  csv_row(const csv_row&) = delete;
  csv_row& operator=(const csv_row&) = delete;

  /// How many fields it has. Rows need not have equally many.
  std::size_t size() const { return fields_.size(); }
  /// A field, without the quotes around it, and with one quote where it has two. Errors:
  /// sojourn::error when the row has no such field.
  std::string_view operator[](std::size_t i) const {
    if (i >= fields_.size()) [[unlikely]]
      text_->fail("row", "it has " + std::to_string(fields_.size()) + " fields, and no field " +
                             std::to_string(i) + " (the first is field 0)");
    return fields_[i];
  }
  /// A field as a number, which is all that the field has: no blanks. Errors: sojourn::error, with
  /// the file, the row's byte offset and the field, when that is no number, or none that a T has.
  template <class T>
    requires((std::integral<T> && !std::same_as<T, bool>) || std::floating_point<T>)
  T as(std::size_t i) const {
    const std::string_view field = (*this)[i];
    T value{};
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (failure != std::errc() || end != field.data() + field.size()) [[unlikely]]
      refuse(i, std::integral<T> ? "whole number" : "number",
             failure == std::errc::result_out_of_range);
    return value;
  }

 private:
  friend class csv;
  [[noreturn]] void refuse(std::size_t i, const char* kind, bool is_too_large) const {
    const std::string field = "field " + std::to_string(i) + ", \"" + std::string(fields_[i]);
    text_->fail("row", field + (is_too_large ? "\", is out of the range of the type asked for"
                                             : "\", is no " + std::string(kind)));
  }

  const readers::text* text_ = nullptr;
  std::vector<std::string_view> fields_;
  std::string unquoted_;  ///< Fields that do not stand in the file as they are.
};

/// This rank's rows of a table, in their order. Blank lines are left out. Every member knows the
/// names of the columns. Which rows a member has, what is required, and errors: as lines
/// (lines.hpp). Also sojourn::error, with the row's byte offset, for a quoted field that does not
/// end, for text behind one, and for a quote in a field that is not quoted. Without
/// csv_options::lines_in_quotes a row is a line; in a table that needs it the member with the
/// field's beginning gets an error, and the one with its other lines may take them for rows.
class csv : public readers::records<csv, csv_row> {
 public:
  explicit csv(const std::string& path, csv_options options = {},
               const team& members = team::world())
      : records(path, members), options_(options) {
    if (std::strchr("\"\r\n", options.separator) != nullptr)
      throw error(path + ": a quote, a line end or NUL cannot separate the fields of a table");
    record_.text_ = &text_;
    if (text_.peek(0) == 0xef && text_.peek(1) == 0xbb && text_.peek(2) == 0xbf)
      text_.pass(3);  // the mark by which some programs say that a text is UTF-8
    while (options.header && columns_.empty() && !text_.is_at_end()) {
      const std::size_t bytes = read_row();
      columns_.assign(record_.fields_.begin(), record_.fields_.end());
      text_.pass(bytes);
    }
  }

  /// The names in the header; none without csv_options::header.
  const std::vector<std::string>& columns() const { return columns_; }
  /// Which field has this name, the first if several have. Errors: sojourn::error, which says what
  /// names there are.
  std::size_t column(std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
    std::string names;
    for (const std::string& one : columns_) names += (names.empty() ? "" : ", ") + one;
    throw error(text_.path() + ": the table has no column " + std::string(name) + "; " +
                (options_.header ? "it has: " + names : "it was opened without a header"));
  }

 private:
  friend records::iterator;

  bool next() {
    // Between rows the number of quotes is even: those within fields come in pairs.
    bool is_quoted = false;
    const auto begins = [&] { return !is_quoted; };
    do {
      const bool is_there = options_.lines_in_quotes
                                ? text_.next_record(begins,
                                                    [&](const char* bytes, std::size_t count) {
                                                      is_quoted ^= has_odd_quotes({bytes, count});
                                                    })
                                : text_.next_record(begins, [](const char*, std::size_t) {});
      if (!is_there) return false;
      text_.take(read_row());
    } while (record_.size() == 0);
    return true;
  }

  static bool has_odd_quotes(std::string_view bytes) {
    return std::count(bytes.begin(), bytes.end(), '"') % 2 != 0;
  }

  /// Reads the row that the text is at, and returns how many bytes it has with its line end. A
  /// blank line has no fields.
  std::size_t read_row() {
    std::size_t end = text_.find('\n', 0);
    if (options_.lines_in_quotes) {
      bool is_quoted = has_odd_quotes(text_.first(end));
      while (is_quoted && text_.peek(end) >= 0) {
        const std::size_t begin = end + 1;
        end = text_.find('\n', begin);
        is_quoted ^= has_odd_quotes(text_.first(end).substr(begin));
      }
    }
    const std::string_view whole = text_.first(end);
    split(end < text_.size() ? readers::without_return(whole) : whole);
    return end + (end < text_.size());
  }

  void split(std::string_view row) {
    record_.fields_.clear();
    if (row.empty()) return;
    const bool has_quotes = row.find('"') != row.npos;
    record_.unquoted_.clear();
    if (has_quotes) record_.unquoted_.reserve(row.size());  // so that it stays where it is
    for (std::size_t begin = 0; begin <= row.size();) {
      if (has_quotes && begin < row.size() && row[begin] == '"') {
        begin = add_quoted(row, begin);
      } else {
        const std::size_t end = std::min(row.find(options_.separator, begin), row.size());
        const std::string_view field = row.substr(begin, end - begin);
        if (has_quotes && field.find('"') != field.npos)
          text_.fail("row",
                     "a quote stands in a field that does not begin with one: put the field "
                     "in quotes, and two quotes for each one in it");
        record_.fields_.push_back(field);
        begin = end + 1;
      }
    }
  }
  /// Adds the field that begins there, and returns where the next one does.
  std::size_t add_quoted(std::string_view row, std::size_t begin) {
    std::string& unquoted = record_.unquoted_;
    const std::size_t before = unquoted.size();
    std::size_t from = begin + 1;
    std::size_t quote = row.find('"', from);
    while (quote < row.size() - 1 && row[quote + 1] == '"') {
      unquoted += row.substr(from, quote + 1 - from);
      from = quote + 2;
      quote = row.find('"', from);
    }
    if (quote == row.npos)
      text_.fail("row", options_.lines_in_quotes
                            ? "a quoted field does not end"
                            : "a quoted field does not end in its line: if fields of this table "
                              "have line ends in them, pass {.lines_in_quotes = true}");
    const std::string_view last = row.substr(from, quote - from);
    if (unquoted.size() == before) {
      record_.fields_.push_back(last);
    } else {
      unquoted += last;
      record_.fields_.push_back(std::string_view(unquoted).substr(before));
    }
    if (quote + 1 < row.size() && row[quote + 1] != options_.separator)
      text_.fail("row", "text follows a quoted field: put two quotes for each one in a field");
    return quote + 2;
  }

  csv_options options_;
  std::vector<std::string> columns_;
};

}  // namespace sojourn
