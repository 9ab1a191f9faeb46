// SPDX-License-Identifier: Apache-2.0
//
// The nine applications of apps/nine as whole programs: beside threads of one process, beside MPI,
// by protocol, and with several threads a rank while messages take 200 us.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "driver/shared.hpp"

namespace bench {
namespace {

constexpr const char* group = shared_group;
using nine = std::vector<nine_application>;
constexpr const char* program = "nine";
constexpr std::array protocols{"lmw", "lsw", "seq"};
constexpr std::array thread_counts{1, 2, 4, 8};
constexpr const char* way = "200us";
/// Of whole programs, which take seconds.
constexpr int rounds_max = 11;

int rounds_of(const settings& chosen) { return std::min(chosen.work.rounds(), rounds_max); }
const char* size_of(const settings& chosen) { return chosen.work.quick ? "small" : "paper"; }

std::string seconds(double ns) { return fmt::format("{:.3f} s", ns * 1e-9); }
double seconds_of(const nlohmann::json& figures) { return figures.at("seconds").get<double>(); }

/// The ratio of geometric means, round by round: of each round's ratios of all applications.
comparison mean_of(const std::vector<comparison>& all) {
  comparison mean;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < all.front().ratios.size(); ++round) {
    std::vector<double> of_round;
    for (const comparison& one : all) of_round.push_back(one.ratios[round]);
    ratios.push_back(geometric_mean(of_round));
  }
  mean.take_ratios(std::move(ratios));
  for (const comparison& one : all) {
    mean.ours_ns += one.ours_ns;
    mean.peer_ns += one.peer_ns;
  }
  return mean;
}

contender of(const std::string& name, const installation& here, const nine_run& what) {
  return {name, [&here, what] { return seconds_of(run_nine(here, what)) * 1e9; }};
}

/// A row a figure of all nine: the mean is judged, each is shown in a table.
void add_mean(report& result, const std::string& key, const std::string& what,
              std::optional<double> reach, const nine& which, const std::vector<comparison>& all) {
  const comparison mean = mean_of(all);
  result.add_ratio_of({group, key, what, std::nullopt, reach, seconds(mean.ours_ns),
                       seconds(mean.peer_ns), std::nullopt},
                      mean);
  for (std::size_t i = 0; i < all.size(); ++i)
    result.add_ratio_detail(group, fmt::format("{}_{}", key, which[i].name), all[i]);
}

std::string table_of(const std::string& title, const char* ours, const char* peer,
                     const nine& which, const std::vector<comparison>& all) {
  std::string text = fmt::format("{}\n{:<14} {:>10} {:>10}  {:>6}  {}", title, "", ours, peer,
                                 "ratio", "quartiles");
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("\n{:<14} {:>10.4f} {:>10.4f}  {:>6.2f}  {:.2f} to {:.2f}", which[i].name,
                        all[i].ours_ns * 1e-9, all[i].peer_ns * 1e-9, all[i].ratio_median,
                        all[i].ratio_q1, all[i].ratio_q3);
  }
  return text;
}

void add_over_threads(report& result, const installation& here, const settings& chosen,
                      const nine& which) {
  std::vector<comparison> all;
  for (const nine_application& a : which) {
    tell_progress(fmt::format("shared: {} beside threads of one process", a.name));
    nine_run ours{.application = a.name, .size = size_of(chosen)};
    nine_run threads = ours;
    threads.here = true;
    threads.threads = 2;
    const samples times =
        interleave(rounds_of(chosen), {of("ranks", here, ours), of("threads", here, threads)});
    all.push_back(compare(times, "ranks", "threads"));
  }
  const comparison* worst =
      &*std::ranges::max_element(all, {}, [](const comparison& c) { return c.ratio_median; });
  const char* name = which[static_cast<std::size_t>(worst - all.data())].name;
  add_mean(result, "nine_over_threads",
           fmt::format("the nine on 2 ranks over 2 threads of a process, geometric mean (worst: "
                       "{}, {:.2f})",
                       name, worst->ratio_median),
           1.5, which, all);
  result.add_detail(group, "nine_over_threads_worst", name);
  result.add_text(table_of(fmt::format("The nine, {} size: seconds on 2 ranks and on 2 threads of "
                                       "one process, medians",
                                       size_of(chosen)),
                           "ranks", "threads", which, all));
}

void add_bytes(report& result, const installation& here, const settings& chosen,
               const nine& which) {
  std::string text = fmt::format("The nine, {} size: KiB of messages about shared memory\n{:<14}",
                                 size_of(chosen), "");
  nlohmann::json rows = nlohmann::json::array();
  std::vector<double> ratios;
  for (const int ranks : {4, 8}) {
    for (const char* protocol : protocols) text += fmt::format(" {:>9} {}", protocol, ranks);
  }
  for (const nine_application& a : which) {
    text += fmt::format("\n{:<14}", a.name);
    for (const int ranks : {4, 8}) {
      tell_progress(fmt::format("shared: bytes that {} moves on {} ranks", a.name, ranks));
      std::map<std::string, double> bytes;
      for (const char* protocol : protocols) {
        bytes[protocol] = bytes_moved(run_nine(here, {.application = a.name,
                                                      .ranks = ranks,
                                                      .protocol = protocol,
                                                      .size = size_of(chosen)}));
        text += fmt::format(" {:>11.0f}", bytes[protocol] / 1024);
      }
      ratios.push_back(bytes["lmw"] / bytes["seq"]);
      rows.push_back({{"application", a.name},
                      {"ranks", ranks},
                      {"lmw_bytes", bytes["lmw"]},
                      {"lsw_bytes", bytes["lsw"]},
                      {"seq_bytes", bytes["seq"]},
                      {"lmw_over_seq", to_thousandths(ratios.back())}});
    }
  }
  result.add_value({group, "lmw_over_seq",
                    "bytes that lmw moves over seq's, 4 and 8 ranks, geometric mean of the nine",
                    to_thousandths(geometric_mean(ratios)), 0.35, "-", "-", std::nullopt});
  result.add_detail(group, "bytes_moved", rows);
  result.add_text(text);
}

void add_latency_hidden(report& result, const installation& here, const settings& chosen,
                        const nine& which) {
  for (const int pages : {1, 8}) {
    std::vector<comparison> all;
    for (const nine_application& a : which) {
      tell_progress(
          fmt::format("shared: {}, messages of {}, {} pages a fault", a.name, way, pages));
      nine_run one{.application = a.name, .delay = way, .pages_a_fault = pages};
      nine_run four = one;
      four.threads = 4;
      const samples times =
          interleave(rounds_of(chosen), {of("4", here, four), of("1", here, one)});
      all.push_back(compare(times, "4", "1"));
    }
    const bool ahead = pages > 1;
    add_mean(
        result, ahead ? "mt4_over_mt1_fetching_ahead" : "mt4_over_mt1",
        fmt::format("the nine with 4 threads a rank over 1, messages of {}, {}, geometric mean",
                    way, ahead ? "8 pages a fault" : "a page a fault"),
        ahead ? std::nullopt : std::optional(0.85), which, all);
    result.add_text(table_of(fmt::format("The nine, small size, 2 ranks, messages take {}, at most "
                                         "{} pages a fault: seconds, medians",
                                         way, pages),
                             "4 threads", "1 thread", which, all));
  }
}

void add_times(report& result, const installation& here, const settings& chosen,
               const nine& which) {
  std::string text = fmt::format(
      "The nine, small size, 2 ranks: milliseconds by protocol and threads a rank, medians\n{:<14}",
      "");
  for (const char* protocol : protocols) {
    for (const int threads : thread_counts)
      text += fmt::format(" {:>8}", fmt::format("{} {}", protocol, threads));
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const nine_application& a : which) {
    tell_progress(fmt::format("shared: {} by protocol and threads", a.name));
    std::vector<contender> contenders;
    for (const char* protocol : protocols) {
      for (const int threads : thread_counts) {
        contenders.push_back(of(fmt::format("{} {}", protocol, threads), here,
                                {.application = a.name, .threads = threads, .protocol = protocol}));
      }
    }
    const samples times = interleave(chosen.work.quick ? 1 : 3, contenders);
    text += fmt::format("\n{:<14}", a.name);
    for (const char* protocol : protocols) {
      for (const int threads : thread_counts) {
        const double ns = median(times.find(fmt::format("{} {}", protocol, threads))->second);
        text += fmt::format(" {:>8.1f}", ns * 1e-6);
        rows.push_back({{"application", a.name},
                        {"protocol", protocol},
                        {"threads", threads},
                        {"seconds", ns * 1e-9}});
      }
    }
  }
  result.add_text(text);
  result.add_detail(group, "times", rows);
}

}  // namespace

std::vector<nine_application> those_of(const shared_settings& chosen) {
  std::vector<nine_application> found;
  for (const nine_application& a : the_nine) {
    const bool named = std::ranges::find(chosen.applications, a.name) != chosen.applications.end();
    if (chosen.applications.empty() || named) found.push_back(a);
  }
  return found;
}

std::vector<std::string> shared_application_names() {
  std::vector<std::string> names{"none"};
  for (const nine_application& a : the_nine) names.emplace_back(a.name);
  return names;
}

double counted(const nlohmann::json& figures, const char* counter) {
  return figures.at("counters").at(counter).get<double>();
}

double bytes_moved(const nlohmann::json& figures) {
  double all = 0;
  for (const char* kind : {"page", "lock", "barrier", "news"})
    all += counted(figures, fmt::format("{}_message_bytes", kind).c_str());
  return all;
}

double geometric_mean(const std::vector<double>& values) {
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return values.empty() ? 0 : std::exp(logarithms / static_cast<double>(values.size()));
}

nlohmann::json run_nine(const installation& here, const nine_run& what) {
  const arguments options{what.application, "--size", what.size, "--threads",
                          std::to_string(what.threads)};
  if (what.here) {
    arguments alone = options;
    alone.emplace_back("--here");
    return application_run::alone(here, program, alone).figures();
  }
  environment extra{{"SOJOURN_SHARED", what.protocol},
                    {"SOJOURN_SHARED_FETCH", std::to_string(what.pages_a_fault)}};
  if (!what.delay.empty()) extra.emplace_back("SOJOURN_DELAY", what.delay);
  return application_run::of_sojourn(here, what.ranks, program, options, extra).figures();
}

void add_sor_over_mpi(report& result, const installation& here, const settings& chosen) {
  constexpr const char* what = "sor on 2 ranks over the same for MPI";
  constexpr const char* peer = "nine_mpi";
  constexpr double reach = 1.15;
  if (const std::string no_mpi = here.mpi_missing(peer); !no_mpi.empty())
    return result.add_missing(group, "sor_over_mpi", what, reach, no_mpi);
  const char* size = size_of(chosen);
  const samples times =
      interleave(rounds_of(chosen),
                 {of("ours", here, {.application = "sor", .size = size}),
                  {"mpi", [&] {
                     tell_progress("shared: sor for MPI");
                     return application_run::of_mpi(here, 2, peer, {"--size", size}).nanoseconds();
                   }}});
  const comparison pairs = compare(times, "ours", "mpi");
  result.add_ratio_of({group, "sor_over_mpi", what, std::nullopt, reach, seconds(pairs.ours_ns),
                       seconds(pairs.peer_ns), std::nullopt},
                      pairs);
}

void add_nine_figures(report& result, const installation& here, const settings& chosen,
                      const std::vector<nine_application>& which) {
  add_over_threads(result, here, chosen, which);
  add_bytes(result, here, chosen, which);
  add_latency_hidden(result, here, chosen, which);
  add_times(result, here, chosen, which);
}

}  // namespace bench
