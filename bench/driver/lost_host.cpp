// SPDX-License-Identifier: Apache-2.0
//
// How long it takes until a host that is cut off, or whose cable is pulled, is named.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "driver/two_hosts.hpp"

namespace bench {
namespace {

constexpr const char* what = "seconds until a host that has gone is named, the longest";
constexpr double reach = 2.0;
constexpr int patience_ms = 20'000;

/// What a job says, on both of its streams.
class words_of_job {
 public:
  words_of_job() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw failure("cannot make a pipe");
  }
  ~words_of_job() {
    close(ends_[0]);
    close_write_end();
  }
  words_of_job(const words_of_job&) = delete;
  words_of_job& operator=(const words_of_job&) = delete;

  int write_end() const { return ends_[1]; }
  void close_write_end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  /// Errors: failure, when these words do not come.
  void wait_for(const std::string& words) {
    const std::uint64_t end_ns = clock_ns() + std::uint64_t{patience_ms} * 1'000'000;
    while (said_.find(words) == std::string::npos) {
      char block[4096];
      pollfd wait{ends_[0], POLLIN, 0};
      if (poll(&wait, 1, 100) == 1) {
        const ssize_t count = read(ends_[0], block, sizeof block);
        if (count <= 0) throw failure("a job has ended before it said '" + words + "': " + said_);
        said_.append(block, static_cast<std::size_t>(count));
      } else if (clock_ns() > end_ns) {
        throw failure("a job does not say '" + words + "': " + said_);
      }
    }
  }

 private:
  int ends_[2];
  std::string said_;
};

void run(const std::string& command) {
  if (const captured done = run_and_capture({"/bin/sh", "-c", command}); done.status != 0)
    throw failure(fmt::format("'{}' ended with status {}", command, done.status));
}

/// From the moment when the command that breaks the connection is called.
double seconds_until_named(const pair_of_hosts& two, const std::string& job_is,
                           const std::string& breaking, const std::string& mending) {
  arguments words{"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"};
  for (const std::string& word : two.job("bench_lost", 2, false)) words.push_back(word);
  words.insert(words.end(), {"--operation", job_is});
  words_of_job said;
  child_process job(words, {}, said.write_end());
  said.close_write_end();
  said.wait_for("begun");
  usleep(200'000);
  const std::uint64_t start_ns = clock_ns();
  run(breaking);
  try {
    said.wait_for("is lost, and with it");
  } catch (...) {
    run(mending);
    throw;
  }
  const double seconds = static_cast<double>(clock_ns() - start_ns) * 1e-9;
  run(mending);
  job.wait();
  return seconds;
}

}  // namespace

void measure_losses(report& result, const settings& chosen, const pair_of_hosts& two,
                    const std::string& breaks) {
  if (breaks.empty())
    return result.add_missing("net", "detected_s", what, reach,
                              "--breaks says what cuts a host off (docs/cluster.md)");
  nlohmann::json rows = nlohmann::json::array();
  double longest = 0;
  for (const char* job_is : {"idle", "sending", "computing"}) {
    for (const auto& [breaking, mending] : {std::pair{"cut", "heal"}, std::pair{"pull", "plug"}}) {
      tell_progress(fmt::format("net: {} while the job is {}", breaking, job_is));
      std::vector<double> seconds;
      for (int round = 0; round < chosen.work.rounds(); ++round)
        seconds.push_back(
            seconds_until_named(two, job_is, breaks + ' ' + breaking, breaks + ' ' + mending));
      const double most = *std::max_element(seconds.begin(), seconds.end());
      longest = std::max(longest, most);
      rows.push_back({{"job", job_is},
                      {"break", breaking},
                      {"rounds", seconds.size()},
                      {"median_s", to_thousandths(median(seconds))},
                      {"longest_s", to_thousandths(most)}});
    }
  }
  result.add_value({"net", "detected_s", what, longest, reach, "", "", std::nullopt, 0, false});
  result.add_detail("net", "detected", rows);
}

}  // namespace bench
