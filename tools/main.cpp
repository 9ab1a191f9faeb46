// SPDX-License-Identifier: Apache-2.0
// The `sojourn` command: starts jobs and benchmarks, checks the host. Each of its own commands
// stands in a file command_NAME; this one finds out which is meant.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "command_advise.hpp"
#include "command_bench.hpp"
#include "command_cc.hpp"
#include "command_doctor.hpp"
#include "command_new.hpp"
#include "command_run.hpp"
#include "sojourn/jobs/hosts.hpp"
#include "words.hpp"

#ifndef SOJOURN_VERSION
#define SOJOURN_VERSION "0.1.0"
#endif

namespace {

// Bad options, a missing program, nothing that could be started.
constexpr int status_not_started = 2;

constexpr const char* help = R"(Sojourn: programs whose data is spread over many processes.

Usage: sojourn COMMAND [OPTIONS...]

  sojourn run -n 4 ./program ...    start four ranks of a program as one job
  sojourn bench NAME ...            measure: ping, migrate, calls, threads, rpc, uts …
  sojourn advise RUN.json           say which word would cost least at each call
  sojourn doctor                    check whether jobs can run here, and what is missing
  sojourn new NAME                  write a small project to begin with
  sojourn cc FILES -o PROGRAM       compile a C program of the macros of ANL and PARMACS
  sojourn run --help                the options of a command, with examples
  sojourn --version

Try this:
  sojourn run -n 4 hostname         four processes; any program will do
  sojourn run -n 4 --dry-run ./program
                                    what would be started, and on which cores
  sojourn run -n 4 --stats ./program
                                    messages, migrations and calls, counted
  sojourn run -n 1 ./master : -n 3 ./worker
                                    two programs, in one job
  sojourn run --hosts a:2,b:2 ./program
                                    one job on two hosts
  ./program                         without the command: a job of one rank
)";

constexpr const char* agent_help = R"(Usage: sojourn agent

Starts and watches the ranks of one host in a job on several. `sojourn run --hosts` starts it there,
and tells it over standard input what to do; nobody else needs it.
)";

/// This command starts ranks itself, and is no rank of srun's, mpirun's or mpiexec's, whatever has
/// started it. Before the runtime looks (src/site/stand_in.cpp).
[[gnu::constructor(101)]] void starts_ranks_itself() { setenv("SOJOURN_SITE", "off", 1); }

int agent_command(const std::vector<std::string>& words) {
  if (words.empty()) return sojourn::run_agent();
  if (words.front() == "--help" || words.front() == "-h") {
    sojourn::tools::print(agent_help);
    return 0;
  }
  sojourn::tools::complain(
      "sojourn agent: there are no options and no arguments; 'sojourn agent --help' says what it "
      "is\n");
  return status_not_started;
}

int dispatch(const std::vector<std::string>& words) {
  using namespace sojourn::tools;
  if (words.empty()) {
    complain("sojourn: no command was given; 'sojourn --help' lists them\n");
    return status_not_started;
  }
  const std::string& command = words.front();
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (command == "run") return run_command(rest);
  if (command == "advise") return advise_command(rest);
  if (command == "bench") return bench_command(rest);
  if (command == "doctor") return doctor_command(rest);
  if (command == "new") return new_command(rest);
  if (command == "cc") return cc_command(rest);
  if (command == "agent") return agent_command(rest);
  if (command == "--help" || command == "-h" || command == "help") {
    print(help);
    return 0;
  }
  if (command == "--version") {
    print(fmt::format("sojourn {}\n", SOJOURN_VERSION));
    return 0;
  }
  complain(fmt::format("sojourn: there is no {} '{}'; 'sojourn --help' lists what there is\n",
                       command.rfind('-', 0) == 0 ? "option" : "command", command));
  return status_not_started;
}

/// Runs `run` on a stack of its own when the limit on this one's (ulimit -s) is too low for what
/// reads debug information.
void with_large_stack(const std::function<void()>& run) {
  constexpr std::size_t enough = std::size_t{1} << 20;
  constexpr std::size_t bytes = std::size_t{8} << 20;
  rlimit limit{};
  bool is_small = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < enough;
  void* stack = is_small ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)
                         : MAP_FAILED;
  ucontext_t here;
  ucontext_t there;
  if (stack == MAP_FAILED || getcontext(&there) != 0) return run();
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = bytes;
  there.uc_link = &here;
  static const std::function<void()>* job;
  job = &run;
  makecontext(&there, [] { (*job)(); }, 0);
  swapcontext(&here, &there);
}

int run_and_report(const std::vector<std::string>& words) {
  using namespace sojourn::tools;
  std::string who = "sojourn" + (words.empty() ? "" : " " + words.front());
  int status = status_not_started;
  try {
    status = dispatch(words);
  } catch (const std::exception& failure) {
    complain(fmt::format("{}: {}\n", who, failure.what()));
  }
  if (int reason = finish_output(); reason != 0) {
    complain(fmt::format("{}: cannot write to standard output: {}\n", who, std::strerror(reason)));
    if (status == 0) status = 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  int status = 0;
  with_large_stack([&] { status = run_and_report(words); });
  return status;
}
