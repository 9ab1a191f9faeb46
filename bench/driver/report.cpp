// SPDX-License-Identifier: Apache-2.0
#include "driver/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

double rounded(double value) { return to_thousandths(value); }

/// Whole from a thousand on.
std::string three_digits(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string nanoseconds(double value) {
  return value < 10'000 ? fmt::format("{:.0f} ns", value) : fmt::format("{:.1f} us", value / 1000);
}

}  // namespace

double to_thousandths(double value) { return std::round(value * 1000) / 1000; }

std::string ratio_text(const comparison& pairs) {
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", pairs.ratio_median, pairs.ratio_q1,
                     pairs.ratio_q3);
}

comparison inverse(const comparison& pairs) {
  comparison rates = pairs;
  std::vector<double> ratios = pairs.ratios;
  for (double& ratio : ratios) ratio = 1 / ratio;
  rates.take_ratios(std::move(ratios));
  return rates;
}

void report::add_ratio(const std::string& group, const std::string& key, const std::string& what,
                       std::optional<double> reach, const comparison& pairs) {
  add_ratios(group, key, what, reach, false, pairs);
}

void report::add_rate_ratio(const std::string& group, const std::string& key,
                            const std::string& what, std::optional<double> reach,
                            const comparison& pairs) {
  add_ratios(group, key, what, reach, true, inverse(pairs));
}

void report::add_companions(const std::string& group, const std::string& key,
                            const comparison& pairs) {
  nlohmann::json& found = json_[group];
  found[key + "_q1"] = rounded(pairs.ratio_q1);
  found[key + "_q3"] = rounded(pairs.ratio_q3);
  found[key + "_min"] = rounded(pairs.ratio_min);
}

void report::add_ratios(const std::string& group, const std::string& key, const std::string& what,
                        std::optional<double> reach, bool at_least, const comparison& pairs) {
  json_[group][key + "_ours_ns"] = rounded(pairs.ours_ns);
  json_[group][key + "_peer_ns"] = rounded(pairs.peer_ns);
  add_ratio_of({group, key, what, std::nullopt, reach, nanoseconds(pairs.ours_ns),
                nanoseconds(pairs.peer_ns), std::nullopt, 0, at_least},
               pairs);
}

void report::add_ratio_of(figure shown, const comparison& pairs) {
  add_companions(shown.group, shown.key, pairs);
  json_[shown.group][shown.key + "_pairs"] = pairs.ratios.size();
  shown.value = rounded(pairs.ratio_median);
  shown.range = {rounded(pairs.ratio_q1), rounded(pairs.ratio_q3), rounded(pairs.ratio_min)};
  shown.pairs = static_cast<int>(pairs.ratios.size());
  add_value(std::move(shown));
}

void report::add_ratio_detail(const std::string& group, const std::string& key,
                              const comparison& pairs) {
  add_detail(group, key, rounded(pairs.ratio_median));
  add_companions(group, key, pairs);
}

void report::add_header(const std::string& key, nlohmann::json value, std::string text) {
  json_[key] = std::move(value);
  headers_.push_back(std::move(text));
}

void report::add_value(figure result) {
  if (result.value)
    json_[result.group][result.key] = *result.value;
  else
    json_[result.group][result.key] = nullptr;
  figures_.push_back(std::move(result));
}

void report::add_missing(const std::string& group, const std::string& key, const std::string& what,
                         std::optional<double> reach, const std::string& why, bool at_least) {
  add_value({group, key, what, std::nullopt, reach, "-", "-", std::nullopt, 0, at_least});
  add_note(fmt::format("{}.{} was not measured: {}", group, key, why));
}

void report::add_detail(const std::string& group, const std::string& key, nlohmann::json value) {
  json_[group][key] = std::move(value);
}

void report::print_page() const {
  std::size_t what_width = 0;
  for (const figure& f : figures_) what_width = std::max(what_width, f.what.size());
  for (const std::string& header : headers_) fmt::print("{}\n", header);
  if (!headers_.empty()) fmt::print("\n");
  if (!figures_.empty()) {
    fmt::print("{:<{}}  {:>10} {:>10} {:>8} {:>15} {:>6} {:>7}\n", "figure", what_width, "ours",
               "peer", "median", "quartiles", "pairs", "reach");
  }
  for (const figure& f : figures_) {
    const std::string value = f.value ? three_digits(*f.value) : "-";
    const std::string range =
        f.range ? fmt::format("{:.3g} to {:.3g}", f.range->q1, f.range->q3) : "-";
    const std::string pairs = f.pairs > 0 ? fmt::format("{}", f.pairs) : "-";
    fmt::print("{:<{}}  {:>10} {:>10} {:>8} {:>15} {:>6} {:>7}  {}\n", f.what, what_width, f.ours,
               f.peer, value, range, pairs,
               f.reach ? fmt::format("{} {:g}", f.at_least ? ">=" : "<=", *f.reach) : "-",
               !f.value   ? "not measured"
               : !f.reach ? "shown"
               : f.met()  ? "met"
                          : "MISSED");
  }
  if (!notes_.empty() && !figures_.empty()) fmt::print("\n");
  for (const std::string& note : notes_) fmt::print("{}\n", note);
}

void report::print_table() const {
  print_page();
  for (const std::string& text : texts_) fmt::print("\n{}\n", text);
}

}  // namespace bench
