// SPDX-License-Identifier: Apache-2.0
//
// What a benchmark found, as a table for people and as one JSON object for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <compiled_json.hpp>

#include "driver/measure.hpp"

namespace bench {

/// Where the middle half of the ratios lies, and the smallest of them.
struct spread {
  double q1;
  double q3;
  double least;
};

/// One figure with the value it is meant to reach: at most, or at least; without one it is shown.
struct figure {
  std::string group;  // "ping"
  std::string key;    // "rpc_over_raw"
  std::string what;   // a line for people
  std::optional<double> value;
  std::optional<double> reach;
  std::string ours;  // absolute, with its unit
  std::string peer;
  std::optional<spread> range;
  int pairs = 0;
  bool at_least = false;

  bool met() const { return value && reach && (at_least ? *value >= *reach : *value <= *reach); }
};

/// To thousandths, as all ratios are told.
double to_thousandths(double value);

/// "1.05 (0.98 to 1.10)": the median and the quartiles.
std::string ratio_text(const comparison& pairs);

/// The same of the other side over this one: of two rates, where the times are compared.
comparison inverse(const comparison& pairs);

class report {
 public:
  /// Adds a ratio with both medians; its companions go under distinct JSON names
  /// (`KEY_q1`, `KEY_q3`, `KEY_min`, `KEY_pairs`, `KEY_ours_ns`, `KEY_peer_ns`).
  void add_ratio(const std::string& group, const std::string& key, const std::string& what,
                 std::optional<double> reach, const comparison& pairs);

  /// The same of two rates: how often ours is done in the time of one of the peer's, to be reached
  /// at least.
  void add_rate_ratio(const std::string& group, const std::string& key, const std::string& what,
                      std::optional<double> reach, const comparison& pairs);

  /// Adds a ratio whose sides are told in other words than nanoseconds: the value, the quartiles
  /// and the number of pairs of `shown` are those of `pairs`.
  void add_ratio_of(figure shown, const comparison& pairs);

  /// Adds a ratio to the JSON alone: `KEY`, `KEY_q1`, `KEY_q3` and `KEY_min`.
  void add_ratio_detail(const std::string& group, const std::string& key, const comparison& pairs);

  /// Adds a figure that is not a ratio of times.
  void add_value(figure result);

  /// Adds a figure that could not be measured; JSON has null. `why` is one sentence.
  void add_missing(const std::string& group, const std::string& key, const std::string& what,
                   std::optional<double> reach, const std::string& why, bool at_least = false);

  /// Adds a further JSON value that has no reach.
  void add_detail(const std::string& group, const std::string& key, nlohmann::json value);

  /// Adds text below the figures: a table of its own.
  void add_text(std::string text) { texts_.push_back(std::move(text)); }

  /// Adds a value beside the groups, and a line above the table.
  void add_header(const std::string& key, nlohmann::json value, std::string text);

  /// Adds a remark on the figures, which stands below them wherever they are printed.
  void add_note(std::string text) { notes_.push_back(std::move(text)); }

  /// The figures, the remarks on them, and the tables.
  void print_table() const;
  /// All but the tables.
  void print_page() const;
  const nlohmann::json& json() const { return json_; }
  const std::vector<figure>& figures() const { return figures_; }

 private:
  void add_ratios(const std::string& group, const std::string& key, const std::string& what,
                  std::optional<double> reach, bool at_least, const comparison& pairs);

  void add_companions(const std::string& group, const std::string& key, const comparison& pairs);

  std::vector<std::string> headers_;
  std::vector<figure> figures_;
  std::vector<std::string> notes_;
  std::vector<std::string> texts_;
  nlohmann::json json_ = nlohmann::json::object();
};

}  // namespace bench
