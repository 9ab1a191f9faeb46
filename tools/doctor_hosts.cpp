// SPDX-License-Identifier: Apache-2.0
// Whether these hosts can have a job together: one with a rank on each, which call each other.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "doctor_parts.hpp"
#include "doctor_program.hpp"
#include "sojourn/jobs/hosts.hpp"
#include "sojourn/sojourn.hpp"

namespace sojourn::tools {
namespace {

constexpr std::size_t calls_most = 200;
constexpr std::size_t long_call_bytes = 1 << 20;
constexpr std::size_t long_calls_most = 8;
// Distant hosts are measured by fewer calls.
constexpr std::uint64_t measured_most_ns = 300'000'000;
// The head gives hosts 30 s to speak, and says then which have not.
constexpr std::chrono::seconds start_patience{45};
constexpr std::chrono::seconds patience_a_host{2};
// What a rank of the job says of one host, before the figures.
constexpr const char* mark = "of-host";

/// What a rank knows of its host.
struct host_facts {
  char kernel[64];
  int cores;
};

host_facts facts_here() {
  host_facts facts{};
  utsname names{};
  uname(&names);
  fmt::format_to_n(facts.kernel, sizeof facts.kernel - 1, "{}", names.release);
  for (char& c : facts.kernel) {
    if (c == ' ') c = '-';
  }
  facts.cores = cores_allowed();
  return facts;
}

/// At most so often, and no longer than it may take. How often it was.
template <class Step>
std::size_t repeat(std::size_t most, Step step) {
  const std::uint64_t begun = now_ns();
  std::size_t times = 0;
  while (times < most && (times == 0 || now_ns() - begun < measured_most_ns)) {
    step();
    ++times;
  }
  return times;
}

double median_call_us(rank_t to) {
  std::vector<std::uint64_t> took;
  repeat(calls_most, [&] {
    const std::uint64_t begun = now_ns();
    rpc(to, [] {}).get();
    took.push_back(now_ns() - begun);
  });
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::nth_element(took.begin(), middle, took.end());
  return static_cast<double>(*middle) * 1e-3;
}

double megabytes_a_second(rank_t to) {
  const std::vector<char> bytes(long_call_bytes, 'x');
  const std::uint64_t begun = now_ns();
  const std::size_t times = repeat(long_calls_most, [&] {
    rpc(to, [](const std::vector<char>& v) { return v.size(); }, bytes).get();
  });
  return static_cast<double>(times * long_call_bytes) * 1e3 / static_cast<double>(now_ns() - begun);
}

/// That rank's clock and this one's differ by no more, as the quickest of some calls shows.
double clocks_agree_us(rank_t of) {
  std::uint64_t least = ~std::uint64_t{0};
  double off = 0;
  repeat(calls_most, [&] {
    const std::uint64_t sent = now_ns();
    const std::uint64_t there = rpc(of, [] { return now_ns(); }).get();
    const std::uint64_t took = now_ns() - sent;
    if (took >= least) return;
    least = took;
    off = static_cast<double>(static_cast<std::int64_t>(there - sent - took / 2)) * 1e-3;
  });
  return std::abs(off) + static_cast<double>(least) * 0.5e-3;
}

struct words_of_hosts {
  std::vector<std::string> names;
  std::vector<finding> warnings;
  std::vector<std::vector<std::string>> figures;
};

/// What the job has said, line by line.
words_of_hosts read_words(const std::string& text) {
  words_of_hosts said;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    if (!all.empty() && all.front() == mark) {
      said.figures.push_back(all);
    } else if (line.rfind("sojourn: ", 0) == 0) {  // the runtime; ssh may speak, too
      said.warnings.push_back({"hosts", severity::warning, bare(line),
                               "docs/cluster.md has what to do about each message"});
    }
  }
  return said;
}

}  // namespace

int be_rank_of_host() {
  char name[] = "sojourn";
  char* arguments[] = {name, nullptr};
  return run(1, arguments, [] {
    // All pairs meet; a host that another cannot reach ends the job with a sentence.
    for (rank_t r = 0; r < rank_count(); ++r) rpc(r, [] {}).get();
    barrier();
    for (rank_t r = 0; rank_me() == 0 && r < rank_count(); ++r) {
      const host_facts facts = rpc(r, facts_here).get();
      fmt::print("{} {} {} {} {:.1f} {:.0f} {:.1f}\n", mark, r, facts.kernel, facts.cores,
                 r == 0 ? 0 : median_call_us(r), r == 0 ? 0 : megabytes_a_second(r),
                 r == 0 ? 0 : clocks_agree_us(r));
    }
    std::fflush(stdout);
    barrier();
  });
}

std::vector<finding> check_hosts(const hosts_to_check& asked) {
  std::vector<host_ranks> hosts =
      asked.list.empty() ? read_hostfile(asked.file) : parse_hosts(asked.list);
  for (host_ranks& host : hosts) host.ranks = 1, host.counted = true;
  const std::string self = own_file();
  std::vector<std::string> words{self, "run", "--no-bind", "--hosts", hosts_text(hosts)};
  words.insert(words.end(), asked.further.begin(), asked.further.end());
  words.insert(words.end(), {self, "doctor", as_rank_of_host});
  const auto started = std::chrono::steady_clock::now();
  const std::chrono::seconds patience =
      start_patience + patience_a_host * static_cast<int>(hosts.size());
  const outcome o = run_program(words, patience);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
  const std::string which =
      fmt::format("job on {} host{}", hosts.size(), hosts.size() == 1 ? "" : "s");
  if (!o.is_well()) {
    std::string command;
    for (const std::string& word : words)
      command += (command.empty() ? "" : " ") + shell_word(word);
    return {
        {which, severity::failure, why_it_failed(o, patience),
         "docs/cluster.md has what to do about each message; to see all that it says: " + command}};
  }
  words_of_hosts said = read_words(o.text);
  std::vector<finding> findings;
  for (const std::vector<std::string>& f : said.figures) {
    if (f.size() != 7) continue;
    const std::size_t rank = std::stoul(f[1]);
    if (rank >= hosts.size()) continue;
    std::string found = fmt::format("Linux {}, {} cores for jobs", f[2], f[3]);
    if (rank > 0) {
      found += fmt::format(
          "; from {}: a call takes {} us, long calls carry {} MB/s, and the "
          "clocks agree within {} us",
          hosts.front().name, f[4], f[5], f[6]);
    }
    findings.push_back({"host " + hosts[rank].name, severity::ok, found, ""});
  }
  findings.insert(findings.end(), said.warnings.begin(), said.warnings.end());
  findings.push_back(
      {which, severity::ok,
       fmt::format("all hosts reached each other; it took {:.1f} s", elapsed.count()), ""});
  return findings;
}

}  // namespace sojourn::tools
