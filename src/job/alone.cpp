// SPDX-License-Identifier: Apache-2.0
#include "job/alone.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "observe/hang_report.hpp"
#include "observe/watch.hpp"

namespace sojourn::detail {

namespace {

/// Prints the report of this rank, the only one of its job.
void say_alone(job_segment& segment, const char* why, bool proven) {
  hang_view view;
  view.why = why;
  view.proven = proven;
  view.ranks.resize(1);
  rank_view& only = view.ranks[0];
  only.file = "/proc/self/exe";
  watch_area area = segment.watch();
  std::uint32_t wanted = area.of(0).report_wanted.load();
  bool answered = area.of(0).report_given.load() == wanted;
  only.condition = answered                                  ? rank_condition::waiting
                   : area.of(0).stack_given.load() == wanted ? rank_condition::computing
                                                             : rank_condition::silent;
  only.pid = getpid();
  only.report = area.report_of(0);
  std::string text = explain(view, "sojourn: ").text;
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

void watch_alone(job_segment& segment, int its_bell, const std::atomic<bool>& ended) {
  std::uint32_t seen = 0;
  while (!ended.load()) {
    pollfd bell{its_bell, POLLIN, 0};
    if (poll(&bell, 1, -1) != 1) continue;
    std::uint64_t rings;
    (void)!read(its_bell, &rings, sizeof rings);
    watch_area area = segment.watch();
    std::uint32_t asked = area.all().asked.load();
    if (ended.load() || asked == seen) continue;
    seen = asked;
    area.ask(0, asked);
    for (int i = 0; i < 100 && area.of(0).report_given.load() != asked; ++i) {
      if (i == 20) syscall(SYS_tgkill, getpid(), area.of(0).thread.load(), SIGURG);
      if (i > 25 && area.of(0).stack_given.load() == asked) break;
      poll(nullptr, 0, 2);
    }
    say_alone(segment, "a report was asked for", false);
  }
}

void end_alone_in_deadlock(job_segment& segment) {
  write_report(segment.watch().report_of(0), false);
  say_alone(segment, "no fiber can go on, and no message is on its way", true);
  std::fflush(nullptr);
  std::_Exit(status_deadlock);
}

}  // namespace sojourn::detail
