// SPDX-License-Identifier: Apache-2.0
//
// Tables 1 to 3 and Figures 1 to 3 and 5 to 7 of Thitikamol and Keleher, Per-Node Multi-Threading
// and Remote Latency, of our nine applications: one run for each protocol and number of threads.
#include "driver/shared_paper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "driver/shared_paper_data.hpp"

namespace bench {
namespace {

constexpr const char* group = shared_group;
constexpr std::array protocols{"lmw", "lsw", "seq"};
using in_paper::thread_counts;

/// Figures 3, 5 and 6: where the time of all ranks goes.
struct time_part {
  const char* name;
  const char* counter;  ///< Null: all the rest.
};
constexpr std::array time_parts{
    time_part{"application", nullptr},      time_part{"barrier", "barrier_idle_ns"},
    time_part{"fault", "page_idle_ns"},     time_part{"lock", "lock_idle_ns"},
    time_part{"IO handling", "serving_ns"}, time_part{"segv", "faulting_ns"}};
/// Figure 7.
struct switch_part {
  const char* name;
  const char* counter;
};
constexpr std::array switch_parts{
    switch_part{"useful", "switches_useful"}, switch_part{"all block", "switches_same_page"},
    switch_part{"tail effect", "switches_tail"}, switch_part{"no work", "switches_idle"}};

/// A run for each application, protocol and number of threads.
class grid {
 public:
  grid(const installation& here, const paper_settings& as)
      : applications_(as.applications), ranks_(as.ranks) {
    for (std::size_t a = 0; a < applications_.size(); ++a) {
      for (std::size_t p = 0; p < protocols.size(); ++p) {
        tell_progress(fmt::format("shared: {} under {}, {} of {}", applications_[a].name,
                                  protocols[p], a + 1, applications_.size()));
        for (std::size_t t = 0; t < thread_counts.size(); ++t) {
          all_.push_back(run_nine(here, {.application = applications_[a].name,
                                         .ranks = as.ranks,
                                         .threads = thread_counts[t],
                                         .protocol = protocols[p],
                                         .delay = as.delay,
                                         .size = as.size}));
        }
      }
    }
  }

  const nlohmann::json& at(std::size_t application, std::size_t protocol,
                           std::size_t threads) const {
    return all_[(application * protocols.size() + protocol) * thread_counts.size() + threads];
  }
  const std::vector<nine_application>& applications() const { return applications_; }
  const char* name(std::size_t application) const { return applications_[application].name; }
  int ranks() const { return ranks_; }
  const std::vector<nlohmann::json>& all() const { return all_; }

 private:
  std::vector<nine_application> applications_;
  std::vector<nlohmann::json> all_;
  int ranks_;
};

double seconds_of(const nlohmann::json& figures) { return figures.at("seconds").get<double>(); }
double seconds_of_ranks(const nlohmann::json& figures) {
  const auto& all = figures.at("rank_seconds");
  return std::accumulate(all.begin(), all.end(), 0.0,
                         [](double sum, const nlohmann::json& s) { return sum + s.get<double>(); });
}

/// In seconds of all ranks together.
std::vector<double> parts_of_time(const nlohmann::json& figures) {
  std::vector<double> parts;
  double rest = seconds_of_ranks(figures);
  for (const time_part& part : time_parts) {
    parts.push_back(part.counter == nullptr ? 0 : counted(figures, part.counter) * 1e-9);
    rest -= parts.back();
  }
  parts.front() = std::max(rest, 0.0);
  return parts;
}

std::string ours_and_paper(double ours, int paper) {
  return fmt::format(" {:>18}", fmt::format("{:.0f} ({})", ours, paper));
}

std::string titled(const std::string& what, const paper_settings& as) {
  return fmt::format("{}: {} size, {} ranks{}", what, as.size, as.ranks,
                     as.delay.empty() ? "" : ", messages of " + as.delay);
}

void add_table_1(report& result, const grid& runs) {
  std::string text = fmt::format(
      "Table 1: what the applications synchronise by, and their inputs\n"
      "{:<14} {:<14} {:<34} {:<10} {:<14} {}",
      "ours", "", "", "the paper's", "", "");
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t a = 0; a < runs.applications().size(); ++a) {
    const nlohmann::json& one = runs.at(a, 0, 0);
    const bool locks =
        counted(one, "locks_local") + counted(one, "locks_remote") + counted(one, "locks_joined") >
        0;
    const std::string sync = locks ? "barrier, lock" : "barrier";
    const auto input = one.at("input").get<std::string>();
    const in_paper::specifics& paper = in_paper::table_1[runs.applications()[a].row];
    text += fmt::format("\n{:<14} {:<14} {:<34} {:<10}  {:<14} {}", runs.name(a), sync, input,
                        runs.applications()[a].paper, paper.sync, paper.input);
    rows.push_back({{"application", runs.name(a)},
                    {"sync", sync},
                    {"input", input},
                    {"paper",
                     {{"application", runs.applications()[a].paper},
                      {"sync", paper.sync},
                      {"input", paper.input}}}});
  }
  result.add_text(text);
  result.add_detail(group, "table_1", rows);
}

/// A column of Tables 2 and 3.
struct column {
  const char* title;
  const char* counter;  ///< Null: KBytes of all messages.

  double of(const nlohmann::json& figures) const {
    return counter == nullptr ? bytes_moved(figures) / 1000 : counted(figures, counter);
  }
};
constexpr std::array columns_2{column{"BW KBytes", nullptr},
                               column{"remote faults", "faults_remote"},
                               column{"remote locks", "locks_remote"},
                               column{"overl. faults", "faults_overlapping"},
                               column{"overl. locks", "locks_overlapping"},
                               column{"contention page", "faults_joined"},
                               column{"contention lock", "locks_joined"},
                               column{"diff create", "diffs_made"},
                               column{"diff use", "diffs_applied"}};
constexpr std::array columns_3{
    column{"BW KBytes", nullptr}, column{"remote faults", "faults_remote"},
    column{"lock messages", "lock_messages"}, column{"page contention", "faults_joined"}};

/// `paper_of(row, t)`: the paper's row, with a number for each column.
template <class Columns, class Paper>
void add_counts(report& result, const grid& runs, const std::string& key, const std::string& title,
                std::size_t protocol, const Columns& columns, Paper paper_of) {
  std::string text = fmt::format("{}; in brackets the paper's\n{:<14} {:>2}", title, "", "T");
  for (const column& c : columns) text += fmt::format(" {:>18}", c.title);
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t a = 0; a < runs.applications().size(); ++a) {
    for (std::size_t t = 0; t < thread_counts.size(); ++t) {
      text += fmt::format("\n{:<14} {:>2}", t == 0 ? runs.name(a) : "", thread_counts[t]);
      nlohmann::json row{{"application", runs.name(a)},
                         {"protocol", protocols[protocol]},
                         {"threads", thread_counts[t]}};
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const double ours = columns[c].of(runs.at(a, protocol, t));
        const int paper = paper_of(runs.applications()[a].row, t)[c];
        text += ours_and_paper(ours, paper);
        row[columns[c].title] = {{"ours", ours}, {"paper", paper}};
      }
      rows.push_back(row);
    }
  }
  result.add_text(text);
  result.add_detail(group, key, rows);
}

void add_figure_1(report& result, const grid& runs, const paper_settings& as) {
  constexpr std::size_t lmw = 0;
  double faults = 0;
  double before = 0;
  double waited = 0;
  double served = 0;
  double messages = 0;
  for (std::size_t a = 0; a < runs.applications().size(); ++a) {
    const nlohmann::json& one = runs.at(a, lmw, 0);
    faults += counted(one, "faults_remote");
    before += counted(one, "faulting_ns");
    waited += counted(one, "page_idle_ns");
    served += counted(one, "serving_ns");
    for (const char* kind : {"page", "lock", "barrier", "news"})
      messages += counted(one, fmt::format("{}_messages", kind).c_str());
  }
  if (faults == 0 || messages == 0) return;
  const double local_us = before / faults / 1000;
  const double waited_us = waited / faults / 1000;
  const double serving_us = served / messages / 1000;
  const in_paper::costs& paper = in_paper::section_4_1;
  result.add_text(fmt::format(
      "{}\n"
      "  here, before the wait              {:>8.1f} us a remote fault\n"
      "  no thread can run until it is over {:>8.1f} us a remote fault\n"
      "  handling a message, here or there  {:>8.1f} us a message\n"
      "The paper draws the parts and says that less than half is local; its fault takes {:.0f} us, "
      "of which\nmprotect {:.0f} and the signal {:.0f}; locks {:.0f} (two messages) and {:.0f} "
      "(three), a barrier of 8 {:.0f},\na thread switch {:.0f}.",
      titled("Figure 1: where the time of a remote fault goes, lmw, a thread a rank, mean of the "
             "nine",
             as),
      local_us, waited_us, serving_us, paper.fault, paper.mprotect, paper.signal,
      paper.two_hop_lock, paper.three_hop_lock, paper.barrier_8, paper.thread_switch));
  result.add_detail(group, "figure_1",
                    {{"local_us_a_fault", to_thousandths(local_us)},
                     {"waited_us_a_fault", to_thousandths(waited_us)},
                     {"serving_us_a_message", to_thousandths(serving_us)},
                     {"paper_fault_us", paper.fault}});
  write_svg(as.figures / "shared_figure_1.svg",
            bar_chart{"Figure 1: a remote fault, local and remote latency",
                      "us",
                      {"here, before the wait", "waited for"},
                      {{"lmw", {{"ours", {local_us, waited_us}}}}}});
}

void add_figure_2(report& result, const installation& here, const grid& runs,
                  const paper_settings& as) {
  std::string text = fmt::format(
      "{}\n{:<14} {:>8} {:>8} {:>8}",
      titled(fmt::format("Figure 2: speedups of {} ranks over one thread without shared memory",
                         runs.ranks()),
             as),
      "", "lmw", "lsw", "seq");
  nlohmann::json rows = nlohmann::json::array();
  bar_chart chart{
      fmt::format("Figure 2: {}-rank speedups", runs.ranks()), "speedup", {"speedup"}, {}};
  for (std::size_t a = 0; a < runs.applications().size(); ++a) {
    const double alone = seconds_of(
        run_nine(here, {.application = runs.name(a), .threads = 1, .size = as.size, .here = true}));
    text += fmt::format("\n{:<14}", runs.name(a));
    nlohmann::json row{{"application", runs.name(a)}};
    bar_group bars{runs.name(a), {}};
    for (std::size_t p = 0; p < protocols.size(); ++p) {
      const double speedup = alone / seconds_of(runs.at(a, p, 0));
      text += fmt::format(" {:>8.3f}", speedup);
      row[protocols[p]] = to_thousandths(speedup);
      bars.bars.push_back({protocols[p], {speedup}});
    }
    rows.push_back(row);
    chart.groups.push_back(bars);
  }
  text +=
      "\nThe paper gives no numbers: LMW is the best of the three but for FFT, SOR is near-linear, "
      "Ocean has\nno speedup; Barnes and SWM slow down by 3 and more under LSW and SEQ. It has a "
      "processor a node.";
  result.add_text(text);
  result.add_detail(group, "figure_2", rows);
  write_svg(as.figures / "shared_figure_2.svg", chart);
}

void add_times(report& result, const grid& runs, const paper_settings& as, int number,
               std::size_t protocol, const std::array<const char*, 9>& said) {
  std::string text =
      fmt::format("{}\n{:<14} {:>2}",
                  titled(fmt::format("Figure {}: time under {}, percent of one thread's", number,
                                     protocols[protocol]),
                         as),
                  "", "T");
  for (const time_part& part : time_parts) text += fmt::format(" {:>11}", part.name);
  text += fmt::format(" {:>7}  {}", "all", "the paper's text, of 4 threads");
  bar_chart chart{
      fmt::format("Figure {}: normalized execution time, {}", number, protocols[protocol]),
      "percent of one thread's",
      {},
      {}};
  for (const time_part& part : time_parts) chart.parts.emplace_back(part.name);
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t a = 0; a < runs.applications().size(); ++a) {
    const double whole = seconds_of_ranks(runs.at(a, protocol, 0));
    bar_group bars{runs.name(a), {}};
    for (std::size_t t = 0; t < thread_counts.size(); ++t) {
      const nlohmann::json& one = runs.at(a, protocol, t);
      std::vector<double> parts = parts_of_time(one);
      nlohmann::json row{{"application", runs.name(a)}, {"threads", thread_counts[t]}};
      text += fmt::format("\n{:<14} {:>2}", t == 0 ? runs.name(a) : "", thread_counts[t]);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i] *= 100 / whole;
        text += fmt::format(" {:>11.1f}", parts[i]);
        row["percent"][time_parts[i].name] = to_thousandths(parts[i]);
      }
      const double all = seconds_of_ranks(one) / whole * 100;
      text += fmt::format(" {:>7.1f}", all);
      if (thread_counts[t] == 4) text += fmt::format("  {}", said[runs.applications()[a].row]);
      row["percent"]["all"] = to_thousandths(all);
      row["seconds"] = seconds_of(one);
      rows.push_back(row);
      bars.bars.push_back({std::to_string(thread_counts[t]), parts});
    }
    chart.groups.push_back(bars);
  }
  result.add_text(text);
  result.add_detail(group, fmt::format("figure_{}", number), rows);
  write_svg(as.figures / fmt::format("shared_figure_{}.svg", number), chart);
}

void add_figure_7(report& result, const grid& runs, const paper_settings& as) {
  std::string text = fmt::format("{}\n{:<14} {:<8} {:>2}",
                                 titled("Figure 7: switches of threads, percent", as), "", "", "T");
  for (const switch_part& part : switch_parts) text += fmt::format(" {:>11}", part.name);
  text += fmt::format(" {:>9}", "all");
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t p = 0; p < protocols.size(); ++p) {
    bar_chart chart{
        fmt::format("Figure 7: useful and non-useful thread switches, {}", protocols[p]),
        "percent",
        {},
        {}};
    for (const switch_part& part : switch_parts) chart.parts.emplace_back(part.name);
    for (std::size_t a = 0; a < runs.applications().size(); ++a) {
      bar_group bars{runs.name(a), {}};
      for (std::size_t t = 1; t < thread_counts.size(); ++t) {
        const nlohmann::json& one = runs.at(a, p, t);
        std::vector<double> parts;
        for (const switch_part& part : switch_parts) parts.push_back(counted(one, part.counter));
        const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
        text += fmt::format("\n{:<14} {:<8} {:>2}", t == 1 ? runs.name(a) : "", protocols[p],
                            thread_counts[t]);
        nlohmann::json row{{"application", runs.name(a)},
                           {"protocol", protocols[p]},
                           {"threads", thread_counts[t]},
                           {"all", all}};
        for (std::size_t i = 0; i < parts.size(); ++i) {
          parts[i] = all == 0 ? 0 : parts[i] / all * 100;
          text += fmt::format(" {:>11.1f}", parts[i]);
          row[switch_parts[i].name] = to_thousandths(parts[i]);
        }
        text += fmt::format(" {:>9.0f}", all);
        rows.push_back(row);
        bars.bars.push_back({std::to_string(thread_counts[t]), parts, fmt::format("{:.0f}", all)});
      }
      chart.groups.push_back(bars);
    }
    write_svg(as.figures / fmt::format("shared_figure_7_{}.svg", protocols[p]), chart);
  }
  text +=
      "\nThe paper's text, of LMW and 8 threads: useful are half or more but for FFT (45), over 90 "
      "for five\napplications and over 70 for two more; most others of FFT and SWM are all block.";
  result.add_text(text);
  result.add_detail(group, "figure_7", rows);
}

}  // namespace

void bench_paper_of_shared(report& result, const installation& here, const paper_settings& as) {
  const grid runs(here, as);
  result.add_detail(group, "paper_settings",
                    {{"size", as.size}, {"ranks", as.ranks}, {"delay", as.delay}});
  add_table_1(result, runs);
  add_counts(result, runs, "table_2", titled("Table 2: what lmw does", as), 0, columns_2,
             [](std::size_t row, std::size_t t) { return in_paper::table_2[row][t]; });
  add_counts(result, runs, "table_3_lsw", titled("Table 3: what lsw does", as), 1, columns_3,
             [](std::size_t row, std::size_t t) { return in_paper::table_3[row][t].lsw; });
  add_counts(result, runs, "table_3_seq", titled("Table 3: what seq does", as), 2, columns_3,
             [](std::size_t row, std::size_t t) { return in_paper::table_3[row][t].seq; });
  add_figure_1(result, runs, as);
  add_figure_2(result, here, runs, as);
  add_times(result, runs, as, 3, 0, in_paper::four_threads_lmw);
  add_caches_figure(result, here, as);
  add_times(result, runs, as, 5, 1, in_paper::four_threads_lsw);
  add_times(result, runs, as, 6, 2, in_paper::four_threads_seq);
  add_figure_7(result, runs, as);
  result.add_detail(group, "paper_runs", runs.all());
  result.add_text(fmt::format("written: {}/shared_figure_*.svg", as.figures.string()));
}

}  // namespace bench
