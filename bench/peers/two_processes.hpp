// SPDX-License-Identifier: Apache-2.0
//
// A peer of two processes on two cores: the first obeys the driver, the second answers the first.
// Knows nothing of Sojourn.
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_channel.hpp"

namespace bench {

/// One of two processes that were forked from one, and its pipe to the other.
class half_of_two {
 public:
  /// Forks, and returns in both, each on its core. The second dies with the first. Before anything
  /// that starts threads. Errors: a sentence, and the process ends.
  half_of_two(const char* name, const std::vector<int>& cpus) {
    int there[2];
    int back[2];
    if (cpus.size() < 2 || pipe(there) != 0 || pipe(back) != 0) fail(name, "needs two cores");
    const pid_t other = fork();
    if (other < 0) fail(name, "cannot start its second process");
    second_ = other == 0;
    if (second_) prctl(PR_SET_PDEATHSIG, SIGKILL);
    in_ = second_ ? there[0] : back[0];
    out_ = second_ ? back[1] : there[1];
    close(second_ ? there[1] : back[1]);
    close(second_ ? back[0] : there[0]);
    if (!pin_to_cpu(cpus[second_ ? 1 : 0])) fail(name, "cannot pin to the core given with --cpus");
  }
  half_of_two(const half_of_two&) = delete;
  half_of_two& operator=(const half_of_two&) = delete;

  bool is_second() const { return second_; }

  void send(const void* data, std::size_t bytes) {
    if (write(out_, data, bytes) != static_cast<ssize_t>(bytes)) fail("peer", "is left alone");
  }
  /// Sleeps until the other has sent as many. False when it is gone.
  bool receive(void* data, std::size_t bytes) {
    for (auto* at = static_cast<char*>(data); bytes > 0;) {
      const ssize_t count = read(in_, at, bytes);
      if (count <= 0) return false;
      at += count;
      bytes -= static_cast<std::size_t>(count);
    }
    return true;
  }

 private:
  [[noreturn]] static void fail(const char* name, const char* what) {
    std::fprintf(stderr, "%s %s\n", name, what);
    std::_Exit(2);
  }

  bool second_ = false;
  int in_ = -1;
  int out_ = -1;
};

/// The first process's part: measures once, or as the driver commands. `measure` returns nothing
/// for an operation or a size that it does not know.
template <class Measure>
int obey(std::string_view peer, const process_options& options, Measure measure) {
  using figures = std::optional<std::vector<double>>;
  const std::string name(peer);
  if (options.commands.empty()) {
    const figures found = measure(command{options.operation, options.plan});
    if (!found) {
      std::fprintf(stderr, "%s: no operation %s of %llu bytes\n", name.c_str(),
                   options.operation.c_str(), static_cast<unsigned long long>(options.plan.bytes));
      return 2;
    }
    print_samples(peer, options, *found);
    return 0;
  }
  command_channel channel(options, 0);
  while (const auto next = channel.next()) {
    if (const figures found = measure(*next))
      channel.answer(*found);
    else
      channel.refuse(name + " does not know this operation or size");
  }
  return 0;
}

}  // namespace bench
