// SPDX-License-Identifier: Apache-2.0
// Programs that srun, mpirun or mpiexec start directly, without `sojourn run`. The launcher's
// processes become no ranks: before main(), they find each other, and the first of each host stands
// in for all of that host. It starts as many ranks as the launcher has started processes there, and
// watches them as the launcher of a job of one host or the agent of a host does; the others sleep
// until it has ended. So a rank that dies is no process of the launcher that dies, and everything
// that `sojourn run` does for a job holds here, too. (docs/cluster.md)
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/kernel_files.hpp"
#include "hosts/addresses.hpp"
#include "hosts/gathered.hpp"
#include "job/cores.hpp"
#include "job/run_rank.hpp"
#include "job/segment.hpp"
#include "site/card.hpp"
#include "site/key.hpp"
#include "site/started_together.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/hosts.hpp"
#include "sojourn/launcher.hpp"
#include "sojourn/rank.hpp"

extern char** environ;

namespace sojourn::detail {

namespace {

/// Tests have hosts that are all this one.
std::string name_of_host() {
  const char* name = std::getenv("SOJOURN_TEST_HOST");
  return name == nullptr ? host_name() : name;
}

/// Equal where one process can start ranks that see what those of another would, watch them, and
/// share memory with them.
std::string key_of_host() {
  char processes[64] = "";
  (void)!readlink("/proc/self/ns/pid", processes, sizeof processes - 1);
  return read_line("/proc/sys/kernel/random/boot_id") + processes + name_of_host();
}

std::string hash_of(const std::vector<std::string>& words) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::string& word : words) {
    for (const char* c = word.c_str(); c <= word.c_str() + word.size(); ++c)
      hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3;
  }
  return std::to_string(hash);
}

card card_of_this_process(const std::vector<std::string>& command) {
  const std::string key = hash_of({key_of_host()});
  return {.host = key,
          .host_name = name_of_host(),
          .process = getpid(),
          .cores = cores_to_text(affinity_cores()),
          .command = hash_of({command.begin() + 1, command.end()})};
}

/// Ranks, and what they start, are not the launcher's.
void forget_launcher() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("PMIX_") || text.starts_with("PMI_"))
      names.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// A launcher gives each of its processes cores of its own: the ranks get those of all.
void take_cores(const std::vector<card>& cards, const host_of_cards& here) {
  std::set<int> cores;
  for (int process : here.processes) {
    const std::vector<int> more = cores_from_text(cards[static_cast<std::size_t>(process)].cores);
    cores.insert(more.begin(), more.end());
  }
  if (cores.empty()) return;
  const auto count = static_cast<std::size_t>(*cores.rbegin()) + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  if (set == nullptr) return;
  CPU_ZERO_S(CPU_ALLOC_SIZE(count), set);
  for (int core : cores) CPU_SET_S(static_cast<std::size_t>(core), CPU_ALLOC_SIZE(count), set);
  // Where that is refused, the ranks share what this process has.
  (void)sched_setaffinity(0, CPU_ALLOC_SIZE(count), set);
  CPU_FREE(set);
}

/// Launchers send signals to all of their processes at once; those that matter are for the one that
/// stands in for the others.
int sleep_until_end_of(pid_t leader) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, leader, 0));
  if (process < 0) return 0;
  pollfd wait{process, POLLIN, 0};
  while (poll(&wait, 1, -1) < 1) {
  }
  return 0;
}

launch_options options_of(const std::vector<std::string>& command, std::size_t ranks) {
  const char* share = std::getenv("SOJOURN_SHARE");
  if (share != nullptr && std::strcmp(share, "on") != 0 && std::strcmp(share, "off") != 0)
    throw error("SOJOURN_SHARE is 'on' or 'off', not '" + printable(share) + "'");
  return {.rank_count = static_cast<int>(ranks),
          .command = command,
          .share_heap = share == nullptr || std::strcmp(share, "on") == 0};
}

/// Returns the exit status of this process.
int stand_in(std::unique_ptr<started_together> others, const std::vector<std::string>& command) {
  const auto number = static_cast<std::size_t>(others->number());
  const bool is_first = number == 0;
  std::vector<card> cards;
  for (const std::string& word : others->exchange(to_text(card_of_this_process(command))))
    cards.push_back(card_from_text(word));
  const bool is_one_program = std::all_of(cards.begin(), cards.end(), [&](const card& one) {
    return one.command == cards.front().command;
  });
  if (!is_one_program && is_first)
    throw error(
        "the launcher has started several programs, or one with several arguments: a job of those "
        "is started by `sojourn run -n 1 ./a : -n 3 ./b`");
  const std::vector<host_of_cards> hosts = hosts_of(cards);
  const auto here = std::find_if(hosts.begin(), hosts.end(), [&](const host_of_cards& host) {
    return std::count(host.processes.begin(), host.processes.end(), others->number()) != 0;
  });
  const int leader = here->processes.front();

  std::optional<gathering> head;
  invitation invited;
  if (hosts.size() > 1) {
    std::string word = "-";
    if (is_first) {
      told_secret told = draw_secret();
      head.emplace(gathering{told.secret, listen_anywhere()});
      invited = {std::move(told.word), addresses_of_host()};
      for (address& a : invited.head) a.set_port(head->door.port);
      word = to_text(invited);
    }
    invited = invitation_from_text(others->exchange(word).front());
  }
  others.reset();
  if (number != static_cast<std::size_t>(leader))
    return sleep_until_end_of(static_cast<pid_t>(cards[static_cast<std::size_t>(leader)].process));

  // The launcher's own process here is the parent. What it leaves when it is killed ends.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  forget_launcher();
  take_cores(cards, *here);
  if (hosts.size() == 1) return launch(plan_launch(options_of(command, cards.size()))).status;
  if (!is_first) {
    // A status of its own could make the launcher end the others before they have said why.
    (void)run_agent({learn_secret(invited.secret), static_cast<std::uint32_t>(here - hosts.begin()),
                     invited.head});
    return 0;
  }
  hosts_options all{.job = options_of(command, cards.size()), .hosts = {}};
  for (const host_of_cards& host : hosts)
    all.hosts.push_back({host.name, static_cast<int>(host.processes.size()), true});
  all.job.hosts = hosts_text(all.hosts);
  return launch_with(*head, all).status;
}

std::vector<std::string> own_command(int argc, char** argv) {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  std::vector<std::string> command(argv, argv + argc);
  if (command.empty()) command.emplace_back();
  if (size > 0) command.front().assign(path, static_cast<std::size_t>(size));
  return command;
}

/// Before the constructors of the program, which thus run in ranks alone. (The C library passes
/// main()'s arguments.)
[[gnu::constructor(102)]] void become_stand_in(int argc, char** argv, char**) {
  const char* site = std::getenv("SOJOURN_SITE");
  if (std::getenv(job_name_variable) != nullptr || std::getenv(rank_variable) != nullptr ||
      (site != nullptr && std::strcmp(site, "off") == 0))
    return;
  int status = status_not_started;
  try {
    std::unique_ptr<started_together> others = launcher_of_this_process();
    if (others == nullptr) return;
    status = stand_in(std::move(others), own_command(argc, argv));
  } catch (const one_of_several&) {  // Another says it.
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sojourn: %s\n", printable(e.what()).c_str());
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

int run_job(int, char**, int (*body)(void*), void* context) { return run_rank(body, context); }

}  // namespace sojourn::detail
