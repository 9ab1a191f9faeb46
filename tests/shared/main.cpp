// SPDX-License-Identifier: Apache-2.0
// Random programs on the protocols of the shared region, in a job of many ranks that is simulated
// in this process; and the same with one rule left out, which must be noticed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "job.hpp"
#include "mutants.hpp"
#include "program.hpp"
#include "shared/pages/rules.hpp"

namespace {

using namespace simulated;  // NOLINT: the program is about nothing else.

const char* const usage =
    R"(Random programs on the protocols of the shared region, on simulated ranks.

  random        runs programs; prints those that fail, with the command that shows one again
  show SEED     runs one, and tells what happens
  lock_only     a program without barriers runs until --count intervals have been closed: what the
                ranks keep must not grow
  mutants       breaks each rule in turn; says which are not noticed
  mutants search [RULE]
                the same for all or one, with the programs that the options tell; prints which
                program notices

  barriers      prints how many bytes a barrier costs from 2 to 128 ranks, each of which stores a word;
                for each rank they must be in proportion to their number
  strangers [SEED]
                runs programs until --count of their messages have been changed at random: each must
                be refused, or do the rank that gets it no harm; or shows one such program

  --protocol P  lmw, lsw, seq, or mixed, which is also meant without this option: each page has
                its own
  --first SEED  the first program: 1; or `fresh`: SOJOURN_TEST_SEED, or else programs that nobody has run before
  --count N     how many: 1000
  --break RULE  runs them with this rule left out
  --ranks N --threads N --pages N --variables N --locks N --phases N --steps N
                how large programs are: most ranks, threads of a rank, pages, variables of a page,
                locks, phases between barriers, and steps of a phase
  --events N    how often threads order what they do by flags, atomics, conditions and counted
                barriers, or create others, between two barriers: 0
  --report 1    ranks look for data races, as they do for --shared-report; there are none
  --pins 1      threads pin pages, which the system then loads and stores
)";

struct options {
  std::string command;
  std::vector<std::string_view> words;  ///< What follows it.
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  program_sizes sizes;
};

struct size_option {
  const char* name;
  int program_sizes::* size;
};
constexpr size_option size_options[] = {
    {"pins", &program_sizes::pins},
    {"ranks", &program_sizes::ranks},
    {"threads", &program_sizes::threads_of_rank},
    {"pages", &program_sizes::pages},
    {"variables", &program_sizes::variables_of_page},
    {"locks", &program_sizes::locks},
    {"phases", &program_sizes::phases},
    {"steps", &program_sizes::steps},
    {"events", &program_sizes::events},
    {"report", &program_sizes::report},
};

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "shared_programs: %s; see shared_programs --help\n", what.c_str());
  std::exit(2);
}

template <class Number>
Number number(std::string_view text) {
  Number n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    refuse("'" + std::string(text) + "' is no number");
  return n;
}

std::optional<protocol_kind> protocol_named(std::string_view name) {
  if (name == "mixed") return std::nullopt;
  for (protocol_kind kind : {protocol_kind::lmw, protocol_kind::lsw, protocol_kind::seq})
    if (name == name_of(kind)) return kind;
  refuse("there is no protocol '" + std::string(name) + "'");
}

rule rule_named(std::string_view name) {
  for (const mutant& m : mutants())
    if (name == m.name) return m.broken;
  refuse("there is no rule '" + std::string(name) + "'");
}

void set_option(options& o, std::string_view name, std::string_view value) {
  if (name == "protocol") {
    o.sizes.protocol = protocol_named(value);
  } else if (name == "break") {
    sojourn::detail::pages::broken = rule_named(value);
  } else if (name == "first" && value == "fresh") {
    const char* given = std::getenv("SOJOURN_TEST_SEED");
    o.first = given != nullptr ? number<std::uint64_t>(given) : std::random_device()();
  } else if (name == "first") {
    o.first = number<std::uint64_t>(value);
  } else if (name == "count") {
    o.count = number<std::uint64_t>(value);
  } else {
    for (const size_option& s : size_options) {
      if (name != s.name) continue;
      o.sizes.*s.size = number<int>(value);
      if (o.sizes.*s.size < 1 || o.sizes.*s.size > 64)
        refuse("--" + std::string(name) + " is from 1 to 64");
      return;
    }
    refuse("there is no option --" + std::string(name));
  }
}

options read_options(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    if (!word.starts_with("--")) {
      if (o.command.empty())
        o.command = word;
      else
        o.words.push_back(word);
      continue;
    }
    if (i + 1 == argc) refuse(std::string(word) + " needs a value");
    set_option(o, word.substr(2), argv[++i]);
  }
  return o;
}

std::string text_of(const program_sizes& sizes) {
  std::string out =
      std::string("--protocol ") + (sizes.protocol ? name_of(*sizes.protocol) : "mixed");
  for (const size_option& s : size_options)
    if (sizes.*s.size != 0)
      out += std::string(" --") + s.name + " " + std::to_string(sizes.*s.size);
  return out;
}

/// What is printed when a check of the protocols, or a fault, ends the process.
std::string last_words;
void say_last_words(int signal) {
  if (write(STDOUT_FILENO, last_words.data(), last_words.size()) < 0) _exit(3);
  // Returns to abort(), or to the fault, which ends the process now.
  std::signal(signal, SIG_DFL);
}

int run_random(const options& o) {
  std::signal(SIGABRT, say_last_words);
  totals sum;
  int failed = 0;
  for (std::uint64_t seed = o.first; seed != o.first + o.count && failed < 3; ++seed) {
    last_words = "to see it again: shared_programs show " + std::to_string(seed) + " " +
                 text_of(o.sizes) + "\n";
    const std::string why = run(random_program(seed, o.sizes), seed, sum);
    if (why.empty()) continue;
    ++failed;
    std::printf("program %llu: %s\n%s", static_cast<unsigned long long>(seed), why.c_str(),
                last_words.c_str());
  }
  std::printf("%llu programs from %llu on, %s: %llu steps, %llu faults, %llu messages, %d failed\n",
              static_cast<unsigned long long>(sum.programs),
              static_cast<unsigned long long>(o.first), text_of(o.sizes).c_str(),
              static_cast<unsigned long long>(sum.steps),
              static_cast<unsigned long long>(sum.faults),
              static_cast<unsigned long long>(sum.messages), failed);
  return failed != 0;
}

strangers strangers_of(std::uint64_t seed) { return strangers(seed * 31 + 7); }

/// Until so many messages were changed.
int run_strangers(const options& o) {
  for (int s : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(s, say_last_words);
  totals sum;
  std::uint64_t messages = 0, refused = 0;
  for (std::uint64_t seed = o.first; messages < o.count; ++seed) {
    last_words = "to see it again: shared_programs strangers " + std::to_string(seed) + " " +
                 text_of(o.sizes) + "\n";
    strangers s = strangers_of(seed);
    try {
      refused += run_with(s, random_program(seed, o.sizes), seed, sum) ? 1 : 0;
    } catch (const failure& f) {
      std::printf("program %llu: %s\n%s", static_cast<unsigned long long>(seed), f.what(),
                  last_words.c_str());
      return 1;
    }
    messages += s.messages;
  }
  std::printf("%llu changed messages to the ranks of %llu programs, %s: %llu were refused\n",
              static_cast<unsigned long long>(messages),
              static_cast<unsigned long long>(sum.programs), text_of(o.sizes).c_str(),
              static_cast<unsigned long long>(refused));
  // Neither must be rare: what is refused at once tests little.
  const bool enough = o.count < 1000 || (refused > messages / 10 && refused < messages / 10 * 9);
  if (!enough) std::printf("too many or too few were refused\n");
  return enough ? 0 : 1;
}

int show_strangers(const options& o) {
  const auto seed = number<std::uint64_t>(o.words.front());
  const program p = random_program(seed, o.sizes);
  std::printf("%s", text_of(p).c_str());
  std::fflush(stdout);
  for (int s : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(s, say_last_words);
  totals sum;
  strangers s = strangers_of(seed);
  std::string why = "as it should be";
  try {
    run_with(s, p, seed, sum, &last_words);
  } catch (const failure& f) {
    why = f.what();
  }
  std::printf("%s%s\n", last_words.c_str(), why.c_str());
  return 0;
}

/// Only what collections of the runtime's own throw away keeps a rank's memory from growing.
int run_lock_only(const options& o) {
  const protocol_kind kind = o.sizes.protocol.value_or(protocol_kind::lmw);
  if (kind == protocol_kind::seq) refuse("seq has no intervals");
  totals sum;
  std::string why;
  // A handover of a lock closes an interval, but a lock may also come back without one.
  for (std::uint64_t order = o.first; why.empty() && sum.intervals < o.count; ++order) {
    why = run(lock_only_program(kind, o.count / 4 + 1), order, sum);
    if (why.empty() && sum.kept_then > 2 * sum.kept_first)
      why = "the ranks kept " + std::to_string(sum.kept_first) + " bytes at most, and then " +
            std::to_string(sum.kept_then);
  }
  std::printf(
      "lock_only, %s: %llu intervals, %llu collections, %llu steps; at most %zu bytes kept, and "
      "%zu "
      "in the second half%s%s\n",
      name_of(kind), static_cast<unsigned long long>(sum.intervals),
      static_cast<unsigned long long>(sum.collections), static_cast<unsigned long long>(sum.steps),
      sum.kept_first, sum.kept_then, why.empty() ? "" : ": ", why.c_str());
  return !why.empty();
}

/// What a barrier costs each rank grows with the number of ranks, and no faster.
int run_barriers() {
  constexpr int barriers = 16, few = 16, most = 128;
  std::printf(
      "Bytes of a barrier at which each rank has stored one word:\n"
      "%7s %20s %24s\n",
      "ranks", "most sent by a rank", "most received by a rank");
  double sent_by_few = 0, received_by_few = 0;
  for (int ranks = 2; ranks <= most; ranks *= 2) {
    totals sum;
    const std::string why = run(barrier_program(ranks, barriers), 1, sum);
    if (!why.empty()) {
      std::printf("%s\n", why.c_str());
      return 1;
    }
    const double sent = static_cast<double>(sum.barrier_bytes_sent) / barriers;
    const double received = static_cast<double>(sum.barrier_bytes_received) / barriers;
    std::printf("%7d %20.0f %24.0f\n", ranks, sent, received);
    if (ranks == few) {
      sent_by_few = sent;
      received_by_few = received;
    }
    // Half of a rank's share is room for what differs in small jobs.
    const double shares = 1.5 * ranks / few;
    if (ranks > few && (sent > shares * sent_by_few || received > shares * received_by_few)) {
      std::printf("more than %.0f times as much as %d ranks\n", shares, few);
      return 1;
    }
  }
  return 0;
}

int show(const options& o) {
  if (o.words.size() != 1) refuse("show needs a seed");
  const auto seed = number<std::uint64_t>(o.words.front());
  const program p = random_program(seed, o.sizes);
  std::printf("%s", text_of(p).c_str());
  std::fflush(stdout);
  std::signal(SIGABRT, say_last_words);
  totals sum;
  const std::string why = run(p, seed, sum, &last_words);
  std::printf("%s%s\n", last_words.c_str(), why.empty() ? "as it should be" : why.c_str());
  return !why.empty();
}

/// Runs programs with a rule broken, in a child process, which may abort. Which one noticed, if
/// any.
std::optional<std::uint64_t> who_notices(rule r, const program_sizes& sizes, std::uint64_t first,
                                         std::uint64_t count) {
  void* const memory = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse("no memory to share with a child");
  auto* const at = static_cast<volatile std::uint64_t*>(memory);
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    sojourn::detail::pages::broken = r;
    totals sum;
    for (std::uint64_t seed = first; seed != first + count; ++seed) {
      *at = seed;
      if (!run(random_program(seed, sizes), seed, sum).empty()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) refuse("no child could be run");
  const std::uint64_t last = *at;
  munmap(memory, sizeof(std::uint64_t));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return last;
}

int run_mutants(const options& o) {
  const bool search = !o.words.empty() && o.words.front() == "search";
  int missed = 0;
  int all = 0;
  for (const mutant& m : mutants()) {
    if (search && o.words.size() > 1 && o.words[1] != m.name) continue;
    program_sizes sizes = search ? o.sizes : m.sizes;
    sizes.protocol = m.sizes.protocol;
    const auto seed = search ? who_notices(m.broken, sizes, o.first, o.count)
                             : who_notices(m.broken, sizes, m.first, m.count);
    ++all;
    if (!seed) ++missed;
    if (!seed || search)
      std::printf("%s, %s: %s\n", m.name, text_of(sizes).c_str(),
                  seed ? std::to_string(*seed).c_str() : "not noticed");
    std::fflush(stdout);
  }
  std::printf("%d rules broken, each alone: %d not noticed\n", all, missed);
  return missed != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const options o = read_options(argc, argv);
  if (o.command == "random") return run_random(o);
  if (o.command == "show") return show(o);
  if (o.command == "lock_only") return run_lock_only(o);
  if (o.command == "barriers") return run_barriers();
  if (o.command == "mutants") return run_mutants(o);
  if (o.command == "strangers") return o.words.empty() ? run_strangers(o) : show_strangers(o);
  refuse(o.command.empty() ? "no command" : "there is no command '" + o.command + "'");
}
