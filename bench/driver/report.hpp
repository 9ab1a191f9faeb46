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

/// One figure with the value it is meant to reach: at most, or at least; without one it is shown.
struct figure {
  std::string group;  // "ping"
  std::string key;    // "rpc_over_raw"
  std::string what;   // a line for people
  std::optional<double> value;
  std::optional<double> reach;
  std::string ours;  // absolute, with its unit
  std::string peer;
  std::optional<double> least;  // smallest ratio of a pair
  int pairs = 0;
  bool at_least = false;

  bool met() const { return value && reach && (at_least ? *value >= *reach : *value <= *reach); }
};

class report {
 public:
  /// Adds a ratio with both medians; its companions go under distinct JSON names
  /// (`KEY_min`, `KEY_pairs`, `KEY_ours_ns`, `KEY_peer_ns`).
  void add_ratio(const std::string& group, const std::string& key, const std::string& what,
                 std::optional<double> reach, const comparison& pairs);

  /// The same of two rates: how often ours is done in the time of one of the peer's, to be reached
  /// at least.
  void add_rate_ratio(const std::string& group, const std::string& key, const std::string& what,
                      std::optional<double> reach, const comparison& pairs);

  /// Adds a figure that is not a ratio of times.
  void add_value(figure result);

  /// Adds a figure that could not be measured; JSON has null. `why` is one sentence.
  void add_missing(const std::string& group, const std::string& key, const std::string& what,
                   std::optional<double> reach, const std::string& why, bool at_least = false);

  /// Adds a further JSON value that has no reach.
  void add_detail(const std::string& group, const std::string& key, nlohmann::json value);

  /// Adds text below the table: a table of its own, or a remark.
  void add_text(std::string text) { texts_.push_back(std::move(text)); }

  void print_table() const;
  const nlohmann::json& json() const { return json_; }

 private:
  void add_ratios(const std::string& group, const std::string& key, const std::string& what,
                  std::optional<double> reach, bool at_least, const comparison& pairs);

  std::vector<figure> figures_;
  std::vector<std::string> texts_;
  nlohmann::json json_ = nlohmann::json::object();
};

}  // namespace bench
