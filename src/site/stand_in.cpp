// SPDX-License-Identifier: Apache-2.0
// Programs that srun, mpirun or mpiexec start directly, without `sojourn run`. The launcher's
// processes do not become ranks. Before main(), they find each other, and the first process of each
// host stands in for all processes of that host. It starts as many ranks as the launcher has
// started processes there, and watches them as the launcher of a job of one host, or the agent of a
// host, does. The other processes sleep until it has ended. So when a rank dies, no process of the
// launcher dies, and all that `sojourn run` does for a job is done here, too. (docs/cluster.md)
#include <fcntl.h>
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
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/kernel_files.hpp"
#include "base/settings.hpp"
#include "hosts/addresses.hpp"
#include "hosts/gathered.hpp"
#include "hosts/key.hpp"
#include "job/cores.hpp"
#include "job/run_rank.hpp"
#include "job/segment.hpp"
#include "migrate/fingerprint.hpp"
#include "site/card.hpp"
#include "site/started_together.hpp"
#include "sojourn/detail/named.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"
#include "sojourn/jobs/launcher.hpp"
#include "sojourn/rank.hpp"

extern char** environ;

namespace sojourn::detail {

namespace {

/// In tests, several hosts are all this one.
std::string name_of_host() {
  const char* name = std::getenv("SOJOURN_TEST_HOST");
  return name == nullptr ? host_name() : name;
}

/// Equal for two processes if the ranks that they start see each other and share memory, and if
/// each process can watch the ranks of the other.
std::string key_of_host() {
  char processes[64] = "";
  (void)!readlink("/proc/self/ns/pid", processes, sizeof processes - 1);
  return read_line("/proc/sys/kernel/random/boot_id") + processes + name_of_host();
}

std::string hash_of(const std::vector<std::string>& words) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& word : words) hash = mix_key(hash, {word.c_str(), word.size() + 1});
  return std::to_string(hash);
}

card card_of_this_process(const std::vector<std::string>& command) {
  return {.host = hash_of({key_of_host()}),
          .host_name = name_of_host(),
          .process = getpid(),
          .cores = cores_to_text(affinity_cores()),
          .command = hash_of({command.begin() + 1, command.end()}) + '-' +
                     std::to_string(image_fingerprint())};
}

/// Ranks, and what they start, are not processes of the launcher. They would take the variables of
/// one process for those of each rank of the host.
void forget_launcher() {
  std::vector<std::string> names{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    for (const char* of_launcher : {"PMIX_", "PMI_", "OMPI_COMM_WORLD_", "MPI_LOCAL"}) {
      if (text.starts_with(of_launcher)) names.push_back(text.substr(0, text.find('=')));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// Opens the nearest ancestor of this process that the launcher has not started: the launcher
/// itself, or its daemon. There may be scripts in between. Returns -1 when it is not found.
int open_launcher() {
  for (pid_t above = getppid(); above > 1;) {
    const std::string folder = "/proc/" + std::to_string(above);
    std::ifstream file(folder + "/environ");
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    const auto has = [&](const std::string& variable) {
      return ('\0' + environment).find('\0' + variable) != std::string::npos;
    };
    if (!has("PMIX_RANK=") && !has("PMI_RANK="))
      return static_cast<int>(syscall(SYS_pidfd_open, above, 0));
    std::istringstream parent(read_field(folder + "/status", "PPid"));
    if (!(parent >> above)) return -1;
  }
  return -1;
}

void ignore_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE})
    std::signal(signal, SIG_IGN);
}

/// Ends this process with SIGTERM when the launcher has ended, so that the job ends as it does when
/// the launcher sends the signal itself. This is done by a child, which ends with this process.
void end_with(int launcher) {
  if (launcher < 0) return;
  const pid_t self = getpid();
  if (fork() != 0) {
    close(launcher);
    return;
  }
  prctl(PR_SET_NAME, "sojourn-watch");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ignore_signals();
  // The child closes all else, because somebody may wait for the end of what is open.
  const int kept = dup2(launcher, 0);
  close_range(1, ~0u, 0);
  pollfd wait{kept, POLLIN, 0};
  while (getppid() == self && poll(&wait, 1, -1) < 1) {
  }
  if (getppid() == self) kill(self, SIGTERM);
  _exit(0);
}

/// Replaces the standard input by /dev/null. Only rank 0 reads the input that the launcher gets:
/// the launcher may wait until all of its processes that have it open have read it.
void read_nothing() {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing > 0) {
    dup2(nothing, 0);
    close(nothing);
  }
}

/// A launcher gives each of its processes its own cores. The ranks of a host get the cores of all
/// of its processes.
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
  // If this is refused, the ranks share the cores of this process.
  (void)sched_setaffinity(0, CPU_ALLOC_SIZE(count), set);
  CPU_FREE(set);
}

/// Ignores signals: launchers send them to all of their processes at once, and the process that
/// stands in for this one handles them.
int sleep_until_end_of(pid_t leader, int launcher) {
  ignore_signals();
  pollfd waits[2] = {{static_cast<int>(syscall(SYS_pidfd_open, leader, 0)), POLLIN, 0},
                     {launcher, POLLIN, 0}};
  while (waits[0].fd >= 0 && poll(waits, 2, -1) < 1) {
  }
  return 0;
}

launch_options options_of(const std::vector<std::string>& command, const std::string& file,
                          std::size_t ranks) {
  return {.rank_count = static_cast<int>(ranks),
          .command = command,
          .file = file,
          .share_heap = shares_heap()};
}

constexpr const char* failed = "!";
/// Another process has failed, and reports why.
struct failed_elsewhere {};

/// As others.exchange(), with the word that `make` returns. If `make` throws in some processes,
/// these throw the same when all have met, and the others throw failed_elsewhere. So nobody is left
/// waiting.
template <class Make>
std::vector<std::string> exchange(started_together& others, Make make,
                                  const std::vector<int>& wanted) {
  std::exception_ptr failure;
  std::string word = failed;
  try {
    word = make();
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<std::string> words = others.exchange(word, wanted);
  if (failure) std::rethrow_exception(failure);
  if (std::count(words.begin(), words.end(), failed) != 0) throw failed_elsewhere();
  return words;
}

std::vector<int> numbers_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// What the processes have found out together.
struct meeting {
  std::vector<card> cards;
  std::vector<host_of_cards> hosts;
  std::size_t here;  ///< The index of this process's host.
  // If there are several hosts:
  std::optional<gathering> head;  ///< In process 0.
  starting_line start{};          ///< In the other processes that stand for a host.
};

/// Exchanges words with the others, as often as needed.
meeting meet(started_together& others, const std::vector<std::string>& command) {
  meeting found{};
  const int number = others.number();
  for (const std::string& word : exchange(
           others, [&] { return to_text(card_of_this_process(command)); },
           numbers_to(others.count())))
    found.cards.push_back(card_from_text(word));
  const std::vector<card>& cards = found.cards;
  if (std::any_of(cards.begin(), cards.end(),
                  [&](const card& one) { return one.command != cards.front().command; })) {
    if (number != 0) throw failed_elsewhere();
    throw error(
        "the launcher has started several programs, or one with several arguments: a job of those "
        "is started by `sojourn run -n 1 ./a : -n 3 ./b`");
  }
  found.hosts = hosts_of(cards);
  const auto here =
      std::find_if(found.hosts.begin(), found.hosts.end(), [&](const host_of_cards& host) {
        return std::count(host.processes.begin(), host.processes.end(), number) != 0;
      });
  found.here = static_cast<std::size_t>(here - found.hosts.begin());
  if (found.hosts.size() == 1) return found;

  const auto invite = [&]() -> std::string {
    if (number != 0) return "-";
    const told_secret told = draw_secret();
    found.head.emplace(gathering{told.secret, listen_anywhere()});
    invitation own{told.word, addresses_of_host()};
    for (address& a : own.head) a.set_port(found.head->door.port);
    return to_text(own);
  };
  const invitation invited = invitation_from_text(exchange(others, invite, {0}).front());
  std::vector<int> leaders;
  for (const host_of_cards& host : found.hosts) leaders.push_back(host.processes.front());
  // A proof that this host knows the same secret as the others.
  const auto accept = [&]() -> std::string {
    if (number != here->processes.front()) return "-";
    if (number != 0)
      found.start = {.secret = learn_secret(invited.secret),
                     .host = static_cast<std::uint32_t>(found.here),
                     .head = invited.head};
    const std::string text = "sojourn: the secret is known";
    return to_hex(prove(number == 0 ? found.head->secret : found.start.secret,
                        std::as_bytes(std::span(text))));
  };
  const std::vector<std::string> proofs = exchange(others, accept, leaders);
  for (std::size_t i = 1; i < proofs.size(); ++i) {
    if (proofs[i] == proofs.front()) continue;
    if (number != 0) throw failed_elsewhere();
    throw error("the secret of the job is another on host " + found.hosts[i].name +
                " than on host " + found.hosts.front().name + ": give all hosts the key in " +
                printable(key_file()));
  }
  return found;
}

/// Returns the exit status of this process.
int stand_in(const meeting& found, int number, const std::vector<std::string>& command,
             const std::string& file) {
  const host_of_cards& here = found.hosts[found.here];
  const int launcher = open_launcher();
  if (number != 0) read_nothing();
  if (const int leader = here.processes.front(); number != leader) {
    const long process = found.cards[static_cast<std::size_t>(leader)].process;
    return sleep_until_end_of(static_cast<pid_t>(process), launcher);
  }
  end_with(launcher);
  forget_launcher();
  take_cores(found.cards, here);
  hosts_options all{.job = options_of(command, file, found.cards.size()), .hosts = {}};
  if (found.hosts.size() == 1) return launch(plan_launch(all.job)).status;
  if (number != 0) {
    // The status of run_agent() is not returned, because it could make the launcher end the others
    // before they have said why they fail.
    (void)run_agent(found.start);
    return 0;
  }
  for (const host_of_cards& host : found.hosts)
    all.hosts.push_back({host.name, static_cast<int>(host.processes.size()), true});
  all.job.hosts = hosts_text(all.hosts);
  return launch_with(*found.head, all).status;
}

/// If the others do not come, perhaps a process of the launcher, which runs another program, has
/// started this one and waits for it.
void give_up(int) {
  constexpr char sentence[] =
      "sojourn: the other processes that the launcher has started have not come within two "
      "minutes: "
      "do all run this program? Where a process of the launcher's has started it besides, set "
      "SOJOURN_SITE=off\n";
  (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
  _exit(status_not_started);
}

class limit_of_meeting {
 public:
  limit_of_meeting() {
    if (std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr) return;
    before_ = std::signal(SIGALRM, give_up);
    alarm(patience_s);
  }
  ~limit_of_meeting() { end(); }
  limit_of_meeting(const limit_of_meeting&) = delete;
  limit_of_meeting& operator=(const limit_of_meeting&) = delete;

  void end() const {
    if (before_ == SIG_ERR) return;
    alarm(0);
    std::signal(SIGALRM, before_);
  }

 private:
  static constexpr unsigned patience_s = 120;
  void (*before_)(int) = SIG_ERR;
};

bool is_off() {
  const char* site = std::getenv("SOJOURN_SITE");
  if (site == nullptr || std::strcmp(site, "on") == 0) return false;
  if (std::strcmp(site, "off") == 0) return true;
  throw error("SOJOURN_SITE is 'on' or 'off', not '" + printable(site) + "'");
}

/// Runs before the constructors of the program, which therefore run only in ranks. (The C library
/// passes main()'s arguments.)
[[gnu::constructor(102)]] void become_stand_in(int argc, char** argv, char**) {
  if (std::getenv(job_name_variable) != nullptr || std::getenv(rank_variable) != nullptr) return;
  int status = status_not_started;
  try {
    if (is_off()) return;
    const limit_of_meeting limit;
    std::unique_ptr<started_together> others = launcher_of_this_process();
    if (others == nullptr) return;
    std::vector<std::string> command(argv, argv + argc);
    if (command.empty()) command.emplace_back("sojourn-program");
    const meeting found = meet(*others, command);
    const int number = others->number();
    others.reset();
    limit.end();
    status = stand_in(found, number, command, own_file());
  } catch (const failed_elsewhere&) {
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sojourn: %s\n", printable(e.what()).c_str());
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

int run_job(int, char**, int (*body)(void*), void* context) { return run_rank(body, context); }

}  // namespace sojourn::detail
