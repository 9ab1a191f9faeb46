// SPDX-License-Identifier: Apache-2.0
#include "command_advise.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <compiled_json.hpp>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "sojourn/errors.hpp"
#include "stats_report.hpp"
#include "words.hpp"

namespace sojourn::tools {
namespace {

constexpr int status_bad_input = 2;

constexpr const char* footer = R"(
How to get such a file, in which all words have been tried:
  SOJOURN_VIA=automatic sojourn run -n 4 --stats --stats-json run.json ./program
  sojourn advise run.json

What is advised can be tried without a rebuild: copy the last line in front of the program's command.
Costs are estimates for a call, where a call to the owner (rpc) costs 1; docs/automatic.md says how
they come about.
)";

/// A call by rpc is a request and a reply.
constexpr double messages_of_rpc = 2;
/// What costs little more is not worth a change.
constexpr double clearly_less = 0.95;

/// One call in the program.
struct call_site {
  std::string place;
  std::string method;
  std::string said;
  std::map<std::string, double> costs;  ///< By word, of a call; those that are known.
  double calls = 0;
  double cost_now = 0;  ///< Of all calls; below 0: not known.
};

struct advice {
  const call_site* of;
  std::string word;           ///< "": nobody has tried another.
  double messages_saved = 0;  ///< In the whole run.
  double bytes_saved = 0;
};

double number(const nlohmann::ordered_json& of, const char* key) {
  const auto found = of.find(key);
  if (found == of.end() || found->is_null()) return -1;
  return found->get<double>();
}

call_site site_in(const nlohmann::ordered_json& of) {
  call_site site;
  site.place = of.at("place").get<std::string>();
  site.method = of.at("method").get<std::string>();
  site.said = of.at("said").get<std::string>();
  const std::string bringing = of.at("bringing").get<std::string>();
  site.costs["rpc"] = 1;
  if (const double c = number(of, "cost_of_migrating"); c >= 0) site.costs["migrate"] = c;
  if (const double c = number(of, "cost_of_bringing"); c >= 0 && !bringing.empty())
    site.costs[bringing] = c;
  // A migration, and a copy or an object that has come, pays for several calls.
  double cost_of_mixture = 0;
  for (const char* word : {"rpc", "migrate", "cache", "fetch"}) {
    const double times = number(of, word);
    if (times <= 0) continue;
    const double calls_each = std::string_view(word) == "rpc" ? 1
                              : std::string_view(word) == "migrate"
                                  ? number(of, "calls_a_migration")
                                  : number(of, "calls_a_bringing");
    const double calls = times * std::max(calls_each, 1.0);
    const auto cost = site.costs.find(word);
    site.calls += calls;
    cost_of_mixture = cost_of_mixture < 0 || cost == site.costs.end()
                          ? -1
                          : cost_of_mixture + calls * cost->second;
  }
  const auto cost_of_said = site.costs.find(site.said);
  site.cost_now = site.said == "automatic"           ? cost_of_mixture
                  : cost_of_said == site.costs.end() ? -1
                                                     : site.calls * cost_of_said->second;
  return site;
}

advice advice_for(const call_site& site, double bytes_of_message) {
  const auto best = std::min_element(site.costs.begin(), site.costs.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (site.costs.size() == 1) return {&site, ""};
  const double cost = best->second * site.calls;
  if (site.cost_now >= 0 && cost > site.cost_now * clearly_less) return {&site, site.said};
  if (site.cost_now < 0) return {&site, best->first};
  const double saved = (site.cost_now - cost) * messages_of_rpc;
  return {&site, best->first, saved, saved * bytes_of_message};
}

/// "node::child", of "app::node::child" or "{anonymous}::node::child".
std::string short_name(const std::string& method) {
  const std::size_t last = method.rfind("::");
  if (last == std::string::npos || last == 0) return method;
  const std::size_t before = method.rfind("::", last - 1);
  return before == std::string::npos ? method : method.substr(before + 2);
}
/// "btree.cpp:12", of "`lookup` (btree.cpp:12)"; "" when it has none.
std::string line_in(const std::string& place) {
  const std::size_t begin = place.rfind('(');
  if (begin == std::string::npos || !place.ends_with(')')) return "";
  return place.substr(begin + 1, place.size() - begin - 2);
}

/// The setting that follows all advice, or "". By methods; by lines where one method is to be
/// called in different ways.
std::string setting_for(const std::vector<advice>& all) {
  std::map<std::string, std::string> word_of_method;
  std::map<std::string, bool> is_ambiguous;
  for (const advice& a : all) {
    const std::string name = short_name(a.of->method);
    const std::string word = a.word.empty() ? a.of->said : a.word;
    const auto [known, fresh] = word_of_method.try_emplace(name, word);
    if (!fresh && known->second != word) is_ambiguous[name] = true;
  }
  std::string setting;
  std::map<std::string, bool> seen;
  for (const advice& a : all) {
    if (a.word.empty() || a.word == a.of->said) continue;
    const std::string method = short_name(a.of->method);
    // SOJOURN_VIA divides its entries at these.
    const bool is_plain = method.find_first_of(",;=") == std::string::npos;
    const std::string name = is_ambiguous[method] || !is_plain ? line_in(a.of->place) : method;
    if (name.empty() || std::exchange(seen[name], true)) continue;
    setting += (setting.empty() ? "" : ",") + name + "=" + a.word;
  }
  return setting.empty() ? "" : "SOJOURN_VIA=" + shell_word(setting);
}

std::string rounded(double value) { return fmt::format("{:.0f}", value); }

std::string table_of(const std::vector<advice>& all) {
  std::vector<std::vector<std::string>> cells;
  cells.push_back({"calls of", "at", "calls", "now", "advised", "messages saved", "bytes saved"});
  for (const advice& a : all) {
    const bool changes = !a.word.empty() && a.word != a.of->said;
    cells.push_back({a.of->method, a.of->place, rounded(a.of->calls), a.of->said,
                     a.word.empty() ? "not known" : a.word,
                     changes && a.of->cost_now >= 0 ? rounded(a.messages_saved) : "",
                     changes && a.of->cost_now >= 0 ? rounded(a.bytes_saved) : ""});
  }
  return aligned(cells);
}

nlohmann::ordered_json json_of(const std::vector<advice>& all, const std::string& setting) {
  nlohmann::ordered_json json;
  json["calls"] = nlohmann::ordered_json::array();
  for (const advice& a : all) {
    nlohmann::ordered_json site{{"place", a.of->place},
                                {"method", a.of->method},
                                {"calls", std::llround(a.of->calls)},
                                {"now", a.of->said}};
    site["advised"] = nullptr;
    if (!a.word.empty()) site["advised"] = a.word;
    site["messages_saved"] = std::llround(a.messages_saved);
    site["bytes_saved"] = std::llround(a.bytes_saved);
    site["costs"] = a.of->costs;
    json["calls"].push_back(std::move(site));
  }
  json["setting"] = setting;
  return json;
}

nlohmann::ordered_json read_run(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  if (!in || !(text << in.rdbuf()))
    throw error(fmt::format("cannot read '{}'; 'sojourn run --stats --stats-json {} …' writes it",
                            file, file));
  nlohmann::ordered_json run = nlohmann::ordered_json::parse(text.str(), nullptr, false);
  if (run.is_discarded() || !run.is_object() || !run.contains("counters"))
    throw error(fmt::format("'{}' is not what 'sojourn run --stats-json FILE' writes", file));
  return run;
}

/// Of a message of a call, headers included.
double bytes_of_message(const nlohmann::ordered_json& run) {
  const auto sum = [&](const char* counter) {
    return run.at("counters").at(counter).at("sum").get<double>();
  };
  const double messages = sum("requests_sent") + sum("replies_sent");
  return messages == 0 ? 0 : (sum("request_bytes") + sum("reply_bytes")) / messages;
}

}  // namespace

int advise_command(const std::vector<std::string>& words) {
  CLI::App app{
      "Reads the counters of a run, and says which word would have cost least at each call of an\n"
      "object on another rank.",
      "sojourn advise"};
  app.footer(footer);
  std::string file;
  bool as_json = false;
  app.add_option("RUN.json", file, "What 'sojourn run --stats --stats-json RUN.json …' has written")
      ->required();
  app.add_flag("--json", as_json, "Print one JSON object")->disable_flag_override();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return 0;
  } catch (const CLI::ParseError& failure) {
    complain(fmt::format("sojourn advise: {}; 'sojourn advise --help' shows what it takes\n",
                         failure.what()));
    return status_bad_input;
  }

  const nlohmann::ordered_json run = read_run(file);
  std::vector<call_site> sites;
  double bytes = 0;
  try {
    bytes = bytes_of_message(run);
    if (const auto calls = run.find("calls"); calls != run.end()) {
      for (const auto& each : *calls) sites.push_back(site_in(each));
    }
  } catch (const nlohmann::json::exception&) {
    throw error(fmt::format("'{}' is not what 'sojourn run --stats-json FILE' writes", file));
  }
  if (sites.empty()) {
    throw error(
        fmt::format("'{}' tells of no calls of objects on other ranks: run with --stats beside "
                    "--stats-json, on "
                    "two ranks or more",
                    file));
  }
  std::vector<advice> all;
  for (const call_site& site : sites) all.push_back(advice_for(site, bytes));
  const std::string setting = setting_for(all);
  if (as_json) {
    print(json_of(all, setting).dump(2) + "\n");
    return 0;
  }
  std::string text = table_of(all);
  const bool any_unknown =
      std::any_of(all.begin(), all.end(), [](auto& a) { return a.word.empty(); });
  if (any_unknown)
    text +=
        "\nNot known: other ways were not tried there. SOJOURN_VIA=automatic tries them, where a "
        "call is made some dozens of times.\n";
  text += setting.empty() ? "\nNo other word would cost clearly less.\n" : "\n" + setting + "\n";
  print(text);
  return 0;
}

}  // namespace sojourn::tools
