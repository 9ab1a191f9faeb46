// SPDX-License-Identifier: Apache-2.0
#include "driver/machine.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "driver/measure.hpp"
#include "driver/report.hpp"

namespace bench {
namespace {

constexpr std::size_t cores_at_most = 8;

/// The model's name; on machines that give numbers instead, these.
std::string processor_of_this_machine() {
  std::map<std::string, std::string> first;
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t name_end = line.find_last_not_of(" \t", colon - 1);
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    if (value == std::string::npos) continue;
    first.emplace(line.substr(0, name_end + 1), line.substr(value));
  }
  if (first.contains("model name")) return first["model name"];
  if (first.contains("CPU part")) {
    return fmt::format("implementer {}, part {}", first["CPU implementer"], first["CPU part"]);
  }
  return "unknown";
}

std::vector<int> cores_of_this_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<double> figures_of(const arguments& command) {
  const captured run = run_and_capture(command);
  if (run.status != 0) {
    throw failure(fmt::format("{} ended with status {}", command.front(), run.status));
  }
  return nlohmann::json::parse(run.output).at("ns").get<std::vector<double>>();
}

}  // namespace

double machine::measure(int first, int second) const {
  const std::vector<double> round_trips =
      figures_of({here_.program("peer_raw"), "--operation", "line", "--cpus",
                  fmt::format("{},{}", first, second), "--iterations", "200", "--samples", "40"});
  return minimum(round_trips);
}

machine::machine(const installation& here) : here_(here), processor_(processor_of_this_machine()) {
  std::vector<int> cores = cores_of_this_process();
  cores_ = static_cast<int>(cores.size());
  if (cores_ < 2) return;
  cores.resize(std::min(cores.size(), cores_at_most));
  for (std::size_t a = 0; a < cores.size(); ++a) {
    for (std::size_t b = a + 1; b < cores.size(); ++b) {
      pairs_.push_back({cores[a], cores[b], measure(cores[a], cores[b])});
    }
  }
  arguments words = here.job(2, "bench_ping");
  words.insert(words.end(), {"--operation", "cpus"});
  const std::vector<double> ranks = figures_of(words);
  bound_ = {static_cast<int>(ranks.at(0)), static_cast<int>(ranks.at(1)), 0};
  bound_.round_trip_ns = measure(bound_.first, bound_.second);
}

nlohmann::json machine::at_the_end() {
  nlohmann::json found = {{"processor", processor_}, {"cores", cores_}};
  if (cores_ < 2) {
    distance_ = "one core";
    found["distance"] = distance_;
    return found;
  }
  at_the_end_ns_ = measure(bound_.first, bound_.second);
  const bool far_before = bound_.round_trip_ns >= distant_from_ns;
  const bool far_after = at_the_end_ns_ >= distant_from_ns;
  distance_ = far_before != far_after ? "changing" : far_after ? "distant" : "close";
  found["distance"] = distance_;
  found["cores_of_2_ranks"] = {bound_.first, bound_.second};
  found["raw_round_trip_ns"] = to_thousandths(bound_.round_trip_ns);
  found["raw_round_trip_at_the_end_ns"] = to_thousandths(at_the_end_ns_);
  for (const core_pair& p : pairs_) {
    found["core_pairs"].push_back(
        {{"cores", {p.first, p.second}}, {"raw_round_trip_ns", to_thousandths(p.round_trip_ns)}});
  }
  return found;
}

std::string machine::text() const {
  if (cores_ < 2) return fmt::format("{}, {} core", processor_, cores_);
  return fmt::format(
      "{}, {} cores; {} cores: the least round trip of a line between cores {} and {} took {:.0f} "
      "ns at the start, {:.0f} ns at the end",
      processor_, cores_, distance_, bound_.first, bound_.second, bound_.round_trip_ns,
      at_the_end_ns_);
}

}  // namespace bench
