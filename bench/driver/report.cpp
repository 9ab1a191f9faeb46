// SPDX-License-Identifier: Apache-2.0
#include "driver/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string nanoseconds(double value) {
  return value < 10'000 ? fmt::format("{:.0f} ns", value) : fmt::format("{:.1f} us", value / 1000);
}

}  // namespace

void report::add_ratio(const std::string& group, const std::string& key, const std::string& what,
                       std::optional<double> reach, const comparison& pairs) {
  add_ratios(group, key, what, reach, false, pairs);
}

void report::add_rate_ratio(const std::string& group, const std::string& key,
                            const std::string& what, std::optional<double> reach,
                            const comparison& pairs) {
  comparison rates = pairs;
  for (double& ratio : rates.ratios) ratio = 1 / ratio;
  rates.ratio_median = median(rates.ratios);
  rates.ratio_min = minimum(rates.ratios);
  add_ratios(group, key, what, reach, true, rates);
}

void report::add_ratios(const std::string& group, const std::string& key, const std::string& what,
                        std::optional<double> reach, bool at_least, const comparison& pairs) {
  nlohmann::json& found = json_[group];
  found[key + "_min"] = rounded(pairs.ratio_min);
  found[key + "_pairs"] = pairs.ratios.size();
  found[key + "_ours_ns"] = rounded(pairs.ours_ns);
  found[key + "_peer_ns"] = rounded(pairs.peer_ns);
  add_value({group, key, what, rounded(pairs.ratio_median), reach, nanoseconds(pairs.ours_ns),
             nanoseconds(pairs.peer_ns), rounded(pairs.ratio_min),
             static_cast<int>(pairs.ratios.size()), at_least});
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
  add_text(fmt::format("{}.{} was not measured: {}", group, key, why));
}

void report::add_detail(const std::string& group, const std::string& key, nlohmann::json value) {
  json_[group][key] = std::move(value);
}

void report::print_table() const {
  std::size_t what_width = 0;
  for (const figure& f : figures_) what_width = std::max(what_width, f.what.size());
  fmt::print("{:<{}}  {:>10} {:>10} {:>8} {:>8} {:>6} {:>7}\n", "figure", what_width, "ours",
             "peer", "figure", "least", "pairs", "reach");
  for (const figure& f : figures_) {
    const std::string value = f.value ? fmt::format("{:.3g}", *f.value) : "-";
    const std::string least = f.least ? fmt::format("{:.3g}", *f.least) : "-";
    const std::string pairs = f.pairs > 0 ? fmt::format("{}", f.pairs) : "-";
    fmt::print("{:<{}}  {:>10} {:>10} {:>8} {:>8} {:>6} {:>7}  {}\n", f.what, what_width, f.ours,
               f.peer, value, least, pairs,
               f.reach ? fmt::format("{} {:g}", f.at_least ? ">=" : "<=", *f.reach) : "-",
               !f.value   ? "not measured"
               : !f.reach ? "shown"
               : f.met()  ? "met"
                          : "MISSED");
  }
  for (const std::string& text : texts_) fmt::print("\n{}\n", text);
}

}  // namespace bench
