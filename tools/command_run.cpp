// SPDX-License-Identifier: Apache-2.0
#include "command_run.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "sojourn/errors.hpp"
#include "stats_report.hpp"
#include "words.hpp"

extern char** environ;

namespace sojourn::tools {
namespace {

constexpr int ranks_max = 1024;

constexpr const char* examples = R"(Examples:
  sojourn run -n 4 ./btree                  four ranks of ./btree
  sojourn run -n 4 ./btree --keys words     what follows the program is the program's
  sojourn run --hosts a:2,b:2 ./btree       ranks 0 and 1 on host a, 2 and 3 on b, by ssh
  sbatch -n 64 --wrap 'sojourn run ./btree' 64 ranks on the hosts that Slurm gives
  sojourn run -n 4 --label ./btree          "[2] " before each line that rank 2 writes
  sojourn run -n 4 --stats ./btree          counters of all ranks, after the job
  sojourn run -n 4 --shared-report ./sor    what shared memory costs, and why
  sojourn run -n 4 --share off ./btree      ranks that reach each other by messages alone
  sojourn run --restore state ./sort        goes on from a checkpoint that ./sort wrote
  sojourn run -n 16 --dry-run ./btree       what would be started, and on which cores
  sojourn run -n 1 ./master : -n 3 ./worker --fast
                                            one job of two programs: rank 0, and ranks 1 to 3
  SOJOURN_VIA='node::child=migrate' sojourn run -n 4 ./btree
                                            another policy at one call site, without a rebuild

The exit status is 0 when every rank ended well, the first failing rank's status or 128 + its
signal otherwise, 130 after Ctrl-C, and 2 when the job could not be started.
)";

struct run_formatter : CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: sojourn run [OPTIONS] PROGRAM [ARGUMENTS...] [: -n N PROGRAM "
           "[ARGUMENTS...]]...\n"
           "\nA word ':' ends the arguments of a program. Another program follows it, whose only "
           "option is -n.\n";
  }
};

/// The options of `sojourn run`, as text: we check their values, so that each mistake gets a
/// sentence that says what is right.
struct run_options {
  CLI::App app{
      "Starts N processes of one program, or of several, on this host or on several, as one job, "
      "and watches them."};
  std::string ranks;
  std::string share;
  std::string stats_json;
  std::string balance;
  std::string cache_bytes;
  std::string stack_main;
  std::string stack_fiber;
  std::string watchdog;
  std::string grace;
  std::string report;
  std::string restore;
  std::string hosts;
  std::string hostfile;
  std::string starter;
  std::string ports;
  std::string net;
  bool encrypt = false;
  std::string network;
  bool here = false;
  bool bind = false;
  bool no_bind = false;
  bool label = false;
  bool stats = false;
  bool shared_report = false;
  std::string shared_report_json;
  bool dry_run = false;

  run_options() {
    app.formatter(std::make_shared<run_formatter>());
    app.footer(examples);
    text("-n,--ranks", ranks, "N",
         "Ranks to start, 1 to 1024 [as many as cores allowed, or as Slurm has given tasks]");
    flag("--bind", bind, "Give each rank a core of its own, and say so when there are too few");
    flag("--no-bind", no_bind, "Let the kernel place ranks [bound when there are enough cores]");
    flag("--label", label, "Put the rank before each line of output, as in: [2] text");
    flag("--stats", stats,
         "After the job, print the counters of each rank and their sums, and the places that fork "
         "and that call objects of other ranks");
    text("--stats-json", stats_json, "FILE", "Write the same to FILE as JSON");
    flag("--shared-report", shared_report,
         "After the job, print which pages of shared memory fault most and where, which ranks "
         "store to the same page, and data races");
    text("--shared-report-json", shared_report_json, "FILE", "Write the same to FILE as JSON");
    text("--share", share, "on|off", "Map objects between ranks, or send messages only [on]");
    text("--balance", balance, "POLICY",
         "Hand ready threads to idle ranks: none, steal or diffuse [none]");
    text("--cache-bytes", cache_bytes, "SIZE",
         "Memory of each rank for copies of objects of other ranks, at most 1024G [64M]");
    text("--stack-main", stack_main, "SIZE",
         "Room for the stack of each rank's main fiber, 64K to 1G; addresses, not memory [8M]");
    text("--stack-fiber", stack_fiber, "SIZE",
         "The same for each other fiber, a power of two [256K]");
    text("--watchdog", watchdog, "SECONDS",
         "Report what all ranks wait for after so long without progress; 0: never [10]");
    text("--grace", grace, "SECONDS",
         "How long the others go on when a rank has died; their waits for it fail [0.1]");
    text("--report", report, "FILE", "Write such reports, also those asked for, to FILE as JSON");
    text("--restore", restore, "PATH",
         "Go on from the checkpoint that the program wrote to PATH, on as many ranks");
    text("--hosts", hosts, "A:2,B:2",
         "Start the ranks on these hosts, so many on each, in this order [this host]");
    text("--hostfile", hostfile, "FILE",
         "The same from a file, a host a line: 'a:2' or 'a slots=2'");
    text("--agent", starter, "COMMAND",
         "What runs a command on a host: COMMAND HOST sojourn agent [ssh -o BatchMode=yes]");
    text("--ports", ports, "A-B",
         "Listen at these ports alone, one a host and one more here [as the system chooses]");
    text("--network", network, "ADDRESS/BITS",
         "Let hosts connect over this network, such as 10.1.0.0/16 [that which reaches the head]");
    text("--net", net, "tcp|ucx",
         "How hosts talk to each other: sockets, or UCX for InfiniBand and RoCE [tcp]");
    flag("--encrypt", encrypt, "Encrypt what hosts send each other, over TCP");
    flag("--here", here, "Start all ranks on this host, in an allocation of several hosts, too");
    flag("--dry-run", dry_run, "Show what would be started, and start nothing");
  }

  bool is_flag(const std::string& word) const {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option != nullptr && option->get_expected_max() == 0;
  }

  /// True when `word` takes the next word as its value.
  bool takes_next(const std::string& word) const {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_expected_max() > 0 && option->get_type_size() > 0 &&
          ((word.size() == 2 && option->check_sname(word.substr(1))) ||
           (word.size() > 2 && option->check_lname(word.substr(2))))) {
        return true;
      }
    }
    return false;
  }

 private:
  void text(const char* names, std::string& value, const char* type, const char* description) {
    app.add_option(names, value, description)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  void flag(const char* name, bool& value, const char* description) {
    app.add_flag(name, value, description)->disable_flag_override();  // no --label=word
  }
};

bool parse_on_off(const std::string& what, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  throw error(what + " is 'on' or 'off', not '" + text + "'");
}

bool share_wanted(const std::string& option) {
  if (!option.empty()) return parse_on_off("--share", option);
  const char* variable = std::getenv("SOJOURN_SHARE");
  return variable == nullptr || parse_on_off("SOJOURN_SHARE", variable);
}

}  // namespace

int parse_rank_count(const std::string& text) {
  int count = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc() || end != text.data() + text.size() || count < 1 ||
      count > ranks_max) {
    throw error(fmt::format("-n takes a number of ranks from 1 to {}, not '{}'", ranks_max, text));
  }
  return count;
}

namespace {

std::string parse_balance(const std::string& text) {
  for (const char* policy : {"none", "steal", "diffuse"}) {
    if (text == policy) return text;
  }
  throw error("--balance is 'none', 'steal' or 'diffuse', not '" + text + "'");
}

/// A number of bytes, or one with K, M or G, as the environment has it.
std::string parse_cache_bytes(const std::string& text) {
  std::uint64_t size = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::string_view units = "KMG";
  const bool has_unit = unit.size() == 1 && units.find(unit.front()) != units.npos;
  const std::size_t which = has_unit ? units.find(unit.front()) + 1 : 0;
  const bool is_size = failure == std::errc() && (unit.empty() || has_unit);
  if (!is_size || size > (std::uint64_t{1} << 40) >> 10 * which)
    throw error("--cache-bytes takes a size of at most 1024G, such as 256M, not '" + text + "'");
  return text;
}

/// "64K", "200M" or "1G", in KiB, as the environment has it. `is_fiber`: a power of two.
std::string parse_stack(const char* option, bool is_fiber, const std::string& text) {
  constexpr std::uint64_t least = 64;
  constexpr std::uint64_t most = 1 << 20;
  std::uint64_t size = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::string_view units = "KMG";
  const std::size_t which = unit.size() == 1 ? units.find(unit.front()) : units.npos;
  const bool is_size = failure == std::errc() && which != units.npos && size <= most;
  const std::uint64_t kib = is_size ? size << 10 * which : 0;
  if (kib < least || kib > most || kib % least != 0 || (is_fiber && !std::has_single_bit(kib))) {
    throw error(fmt::format("{} takes a size from 64K to 1G, such as 256M, that is {}, not '{}'",
                            option, is_fiber ? "a power of two" : "a multiple of 64K", text));
  }
  return std::to_string(kib);
}

double parse_seconds(const char* option, const char* of_0, const std::string& text) {
  constexpr double most = 1e6;
  double seconds = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failure != std::errc() || end != text.data() + text.size() || !(seconds >= 0) ||
      seconds > most) {
    throw error(fmt::format("{} takes a number of seconds from 0{} to {:.0f}, not '{}'", option,
                            of_0, most, text));
  }
  return seconds;
}

/// A number or an option in the place of a file's name is one that was forgotten.
void check_file_name(const run_options& options, const char* option, const char* what,
                     const std::string& name) {
  if (options.app.count(option) == 0) return;
  if (name.empty()) throw error(fmt::format("{} takes the name of {}", option, what));
  bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
  if (name.front() != '-' && !is_number) return;
  throw error(fmt::format("{} takes the name of {}, not {}; write ./{} for one of that name",
                          option, what, shell_word(name), shell_word(name)));
}

/// Says of --label=word what is wrong, for which CLI11 has no error of its own.
void refuse_values_of_flags(const run_options& options, const std::vector<std::string>& words,
                            std::size_t own) {
  for (std::size_t i = 0; i < own; ++i) {
    const std::size_t value = words[i].find('=');
    if (value != std::string::npos && options.is_flag(words[i].substr(0, value)))
      throw error(fmt::format("{} takes no value; 'sojourn run --help' lists the options",
                              words[i].substr(0, value)));
  }
}

/// As many ranks go on as have written it.
void check_rank_count(const std::string& checkpoint, int ranks) {
  const int wrote = checkpoint_rank_count(checkpoint);
  if (ranks == wrote) return;
  throw error(fmt::format(
      "cannot restore: {} was written by {} ranks, and this job has {}: run it with -n {}",
      checkpoint, wrote, ranks, wrote));
}

/// Gives each host of the allocation as many ranks as it had when the checkpoint was written.
void take_as_written(allocation& given, const std::string& checkpoint, const std::string& wrote) {
  const std::vector<host_ranks> before = parse_hosts(wrote);
  bool fits = given.hosts.size() >= before.size();
  for (std::size_t i = 0; fits && i < before.size(); ++i)
    fits = given.hosts[i].ranks >= before[i].ranks;
  if (!fits) {
    throw error(
        fmt::format("cannot restore: {} was written with --hosts {}, and {} has no room for as "
                    "many ranks on as "
                    "many hosts: ask for these",
                    checkpoint, wrote, given.text));
  }
  given.hosts.resize(before.size());
  for (std::size_t i = 0; i < before.size(); ++i) given.hosts[i].ranks = before[i].ranks;
}

/// Where the ranks are to be, when the command line says so.
void place_ranks(run_request& request, const run_options& options) {
  const bool list = options.app.count("--hosts") != 0;
  const bool file = options.app.count("--hostfile") != 0;
  if (list + file + options.here > 1)
    throw error("--hosts, --hostfile and --here exclude each other");
  request.ports = options.ports;
  request.network = options.network;
  request.net = options.net;
  request.encrypt = options.encrypt;
  if (!list && !file) {
    const std::string& restore = request.options.restore;
    const std::string wrote = restore.empty() ? "" : checkpoint_hosts(restore);
    // A checkpoint of one host goes on on this one, where its files are.
    if (!options.here && (restore.empty() || !wrote.empty())) request.given = allocated_hosts();
    if (request.given) {
      request.options.agent = options.starter;
      if (!wrote.empty()) take_as_written(*request.given, restore, wrote);
      return;
    }
    // Outside of an allocation, which is of other hosts now, it goes on on the same again.
    if (!wrote.empty() && !options.here && std::getenv("SLURM_JOB_ID") == nullptr) {
      request.options.agent = options.starter;
      request.hosts = parse_hosts(wrote);
      if (request.says_ranks) check_rank_count(restore, request.options.rank_count);
      return;
    }
    // A batch file may have them for allocations of any number of hosts.
    const bool is_allocation = std::getenv("SLURM_JOB_ID") != nullptr;
    for (const char* option : {"--agent", "--ports", "--network", "--net", "--encrypt"}) {
      if (options.app.count(option) != 0 && !is_allocation)
        throw error(
            fmt::format("{} says how other hosts are reached, and neither --hosts nor --hostfile "
                        "nor an allocation of Slurm names any",
                        option));
    }
    return;
  }
  check_file_name(options, "--hostfile", "a file", options.hostfile);
  request.hosts = list ? parse_hosts(options.hosts) : read_hostfile(options.hostfile);
  request.options.agent = options.starter;
  if (file) request.hosts_given_as = "--hostfile " + options.hostfile;
}

void take_rank_count(run_request& request, const run_options& options) {
  const std::string& restore = request.options.restore;
  const bool names_hosts = options.app.count("--hosts") + options.app.count("--hostfile") != 0;
  request.says_ranks = options.app.count("--ranks") != 0;
  if (request.says_ranks) {
    request.options.rank_count = parse_rank_count(options.ranks);
  } else if (!restore.empty() && !names_hosts) {
    request.options.rank_count = checkpoint_rank_count(restore);
    request.says_ranks = true;
  } else {
    request.options.rank_count = std::min(cores_allowed(), ranks_max);
  }
}

/// Hosts that the user names without numbers of ranks share those of the checkpoint, where it can
/// be read here; what counts in the end is what the hosts have of it (launch_on_hosts).
void share_restored_ranks(run_request& request) {
  const std::string& restore = request.options.restore;
  const auto counted = [](const host_ranks& host) { return host.counted; };
  if (restore.empty() || request.hosts.empty() || request.says_ranks ||
      std::any_of(request.hosts.begin(), request.hosts.end(), counted))
    return;
  try {
    request.options.rank_count = checkpoint_rank_count(restore);
    request.says_ranks = true;
  } catch (const error&) {  // it is on the hosts, or nowhere
  }
}

/// Reads what stands before a first ':'. `is_all`: nothing follows.
run_request parse_job(const std::vector<std::string>& words, bool is_all) {
  run_options options;
  // The first word that is neither an option nor an option's value is the program; all words after
  // it are the program's, whatever they look like.
  std::size_t program = 0;
  while (program < words.size() && words[program].size() > 1 && words[program][0] == '-' &&
         words[program] != "--") {
    program += options.takes_next(words[program]) ? 2 : 1;
  }
  std::size_t own = std::min(program, words.size());
  std::vector<std::string> reversed(words.rend() - static_cast<std::ptrdiff_t>(own), words.rend());
  if (program < words.size() && words[program] == "--") ++program;

  run_request request;
  try {
    options.app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    request.help = options.app.help();
    return request;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> unknown = options.app.remaining();
    throw error(fmt::format("there is no option {}; 'sojourn run --help' lists them",
                            unknown.empty() ? "like that" : shell_word(unknown.front())));
  } catch (const CLI::ArgumentMismatch&) {
    refuse_values_of_flags(options, words, own);
    throw error(fmt::format("{} takes a value; 'sojourn run --help' says which",
                            own == 0 ? "an option" : shell_word(words[own - 1])));
  } catch (const CLI::ParseError& failure) {
    refuse_values_of_flags(options, words, own);
    throw error(fmt::format("{}; 'sojourn run --help' lists the options", failure.what()));
  }
  if (options.bind && options.no_bind) throw error("--bind and --no-bind exclude each other");
  check_file_name(options, "--restore", "a checkpoint", options.restore);
  check_file_name(options, "--stats-json", "a file", options.stats_json);
  check_file_name(options, "--shared-report-json", "a file", options.shared_report_json);
  check_file_name(options, "--report", "a file", options.report);
  if (program < words.size()) {
    request.options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(program),
                                   words.end());
  }
  if (request.options.command.empty()) {
    throw error("no program was given; 'sojourn run --help' shows how");
  }
  request.options.restore = options.restore;
  if (!options.restore.empty() && !is_all)
    throw error("--restore is for jobs of one program, and this one has several");
  take_rank_count(request, options);
  request.options.bind = options.bind      ? binding::wanted
                         : options.no_bind ? binding::off
                                           : binding::automatic;
  request.options.label = options.label;
  request.options.share_heap = share_wanted(options.share);
  if (options.app.count("--balance") != 0) request.balance = parse_balance(options.balance);
  if (options.app.count("--cache-bytes") != 0)
    request.cache_bytes = parse_cache_bytes(options.cache_bytes);
  if (options.app.count("--stack-main") != 0) {
    request.main_stack_kib = parse_stack("--stack-main", false, options.stack_main);
  }
  if (options.app.count("--stack-fiber") != 0) {
    request.fiber_stack_kib = parse_stack("--stack-fiber", true, options.stack_fiber);
  }
  if (options.app.count("--watchdog") != 0) {
    request.options.watchdog_seconds = parse_seconds("--watchdog", " (never)", options.watchdog);
  }
  if (options.app.count("--grace") != 0) {
    request.options.grace_seconds = parse_seconds("--grace", "", options.grace);
  }
  request.report = options.report;
  request.stats = options.stats;
  request.shared_report = options.shared_report;
  request.shared_report_json = options.shared_report_json;
  request.stats_json = options.stats_json;
  request.dry_run = options.dry_run;
  place_ranks(request, options);
  share_restored_ranks(request);
  return request;
}

constexpr const char* between_programs = ":";

/// The words of one program after a ':': "-n 3 ./worker arguments".
launch_part parse_part(const std::vector<std::string>& words) {
  constexpr const char* how = "'sojourn run -n 1 ./a : -n 3 ./b'";
  std::optional<std::string> number;
  std::size_t program = 0;
  while (program < words.size() && words[program].size() > 1 && words[program][0] == '-') {
    const std::string& word = words[program++];
    if (word == "--") break;
    constexpr std::string_view long_name = "--ranks";
    if (word == "-n" || word == long_name) {
      if (program == words.size()) throw error(word + " takes a value");
      number = words[program++];
    } else if (word.rfind("-n", 0) == 0) {
      number = word.substr(2);
    } else if (word.rfind(std::string(long_name) + "=", 0) == 0) {
      number = word.substr(long_name.size() + 1);
    } else {
      throw error(
          fmt::format("only -n and a program may follow a ':', and {} is for the whole job: put it "
                      "before the first program",
                      shell_word(word)));
    }
  }
  if (program == words.size()) {
    throw error(fmt::format("no program was given after a ':'; {} starts a job of two", how));
  }
  if (!number) {
    throw error(
        fmt::format("each program of a job of several needs its number of ranks (-n), and {} has "
                    "none: {}",
                    shell_word(words[program]), how));
  }
  return {parse_rank_count(*number),
          {words.begin() + static_cast<std::ptrdiff_t>(program), words.end()}};
}

/// Words up to the next ':' or the end.
std::vector<std::string> take_part(const std::vector<std::string>& words, std::size_t& at) {
  auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
  auto end = std::find(first, words.end(), between_programs);
  at = static_cast<std::size_t>(end - words.begin());
  return {first, end};
}

}  // namespace

namespace {

/// How many ranks each host has, now that it is known how many there are.
run_request shared_out(run_request request) {
  if (request.given) {
    allocation& given = *request.given;
    if (request.says_ranks || !request.options.parts.empty())
      take_ranks(given, request.options.rank_count);
    request.hosts = given.hosts;
    request.hosts_given_as = given.text;
  }
  if (request.hosts.empty()) return request;
  const bool several = !request.options.parts.empty();
  share_ranks(request.hosts, request.options.rank_count, request.says_ranks || several,
              request.hosts_given_as);
  int ranks = 0;
  for (const host_ranks& host : request.hosts) ranks += host.ranks;
  if (ranks > ranks_max)
    throw error(
        fmt::format("a job has at most {} ranks, and these hosts have {}", ranks_max, ranks));
  request.options.rank_count = ranks;
  request.options.hosts = hosts_text(request.hosts);
  return request;
}

}  // namespace

run_request parse_run(const std::vector<std::string>& all) {
  std::size_t end = 0;
  std::vector<std::string> words = take_part(all, end);
  run_request request = parse_job(words, end == all.size());
  if (!request.help.empty()) return request;
  if (end == all.size()) return shared_out(std::move(request));
  if (!request.says_ranks) {
    throw error(
        fmt::format("each program of a job of several needs its number of ranks (-n), and {} has "
                    "none: 'sojourn run -n 1 ./a : -n 3 ./b'",
                    shell_word(request.options.command.front())));
  }
  request.options.parts.push_back({request.options.rank_count, request.options.command});
  while (end < all.size()) {
    ++end;
    request.options.parts.push_back(parse_part(take_part(all, end)));
  }
  int ranks = 0;
  for (const launch_part& part : request.options.parts) ranks += part.rank_count;
  if (ranks > ranks_max) {
    throw error(fmt::format("a job has at most {} ranks, and the programs of this one have {}",
                            ranks_max, ranks));
  }
  request.options.rank_count = ranks;
  return shared_out(std::move(request));
}

std::string describe_plan(const launch_plan& plan) {
  const launch_options& options = plan.options;
  std::string text = fmt::format("ranks:       {}\n", options.rank_count);
  for (const planned_part& part : plan.parts) {
    std::string whose = plan.parts.size() > 1 ? ", " + ranks_text(part) : "";
    text += fmt::format("program:     {}{}\n", part.program, whose);
    text += "command:    ";
    for (const std::string& word : part.command) text += " " + shell_word(word);
    text += "\n";
  }
  text += fmt::format("heap:        {}\n",
                      options.share_heap ? "shared by the ranks" : "reached by messages");
  if (!options.restore.empty()) text += fmt::format("restores:    {}\n", options.restore);
  text += fmt::format("cores:       {} allowed\n", plan.cores);
  if (plan.core_of_rank.empty()) {
    text += "binding:     none\n";
  } else {
    text += "binding:    ";
    for (std::size_t rank = 0; rank < plan.core_of_rank.size(); ++rank) {
      text +=
          fmt::format("{} rank {} on core {}", rank == 0 ? "" : ",", rank, plan.core_of_rank[rank]);
    }
    text += "\n";
  }
  text += fmt::format(
      "environment: SOJOURN_RANK=(0 to {}) SOJOURN_JOB_FDS=(three descriptors) SOJOURN_JOB=(one "
      "word)\n",
      options.rank_count - 1);
  text += fmt::format("             SOJOURN_SHARE={}\n", options.share_heap ? "on" : "off");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view variable = *entry;
    auto begins = [&](std::string_view name) { return variable.rfind(name, 0) == 0; };
    if (begins("SOJOURN_") && !begins("SOJOURN_RANK=") && !begins("SOJOURN_JOB_FDS=") &&
        !begins("SOJOURN_JOB=") && !begins("SOJOURN_SHARE=")) {
      std::size_t equals = variable.find('=');
      text += fmt::format(
          "             {}={}\n", variable.substr(0, equals),
          shell_word(std::string(variable.substr(std::min(equals, variable.size() - 1) + 1))));
    }
  }
  return text;
}

namespace {

/// The exit status.
int report_stats(const run_request& request, const launch_plan& plan, const launch_result& result,
                 stats_file& file) {
  if (request.stats)
    complain(stats_table(plan, result) + forks_table(result) + calls_table(result));
  if (!request.stats_json.empty()) {
    std::string failure = file.write(stats_json(plan, result));
    if (!failure.empty()) {
      complain(fmt::format("sojourn run: {}\n", failure));
      if (result.status == 0) return 1;
    }
  }
  return result.status;
}

int run_on_hosts(const run_request& request) {
  hosts_options options{.job = request.options, .hosts = request.hosts};
  if (!request.options.agent.empty()) {
    options.starter = request.options.agent;
  } else if (request.given) {
    options.starter = request.given->starter;
    options.is_overheard = request.given->is_overheard;
  }
  if (request.dry_run) {
    print(describe_hosts(options));
    return 0;
  }
  stats_file file(request.stats_json);
  const launch_result result = launch_on_hosts(options);
  // What the hosts have in common: each finds the programs, and its cores, by itself.
  launch_plan plan;
  plan.options = request.options;
  plan.ranks_here = request.options.rank_count;
  plan.program = request.options.command.front();
  for (int first = 0; const launch_part& part : request.options.parts) {
    plan.parts.push_back({first, part.rank_count, part.command, {}});
    first += part.rank_count;
  }
  if (plan.parts.empty())
    plan.parts.push_back({0, request.options.rank_count, request.options.command, {}});
  return report_stats(request, plan, result, file);
}

}  // namespace

int run_command(const std::vector<std::string>& words) {
  run_request request = parse_run(words);
  if (!request.help.empty()) {
    print(request.help);
    return 0;
  }
  // What ranks inherit, and --dry-run shows.
  // Ranks then say which frames could not be given to others.
  if (request.stats) setenv("SOJOURN_STATS", "on", 0);
  if (request.encrypt) setenv("SOJOURN_ENCRYPT", "on", 1);
  if (request.shared_report) setenv("SOJOURN_SHARED_REPORT", "on", 1);
  for (const auto& [setting, value] :
       {std::pair("SOJOURN_BALANCE", &request.balance),
        std::pair("SOJOURN_CACHE_BYTES", &request.cache_bytes),
        std::pair("SOJOURN_MAIN_STACK_KIB", &request.main_stack_kib),
        std::pair("SOJOURN_NET", &request.net), std::pair("SOJOURN_NETWORK", &request.network),
        std::pair("SOJOURN_PORTS", &request.ports),
        std::pair("SOJOURN_SHARED_REPORT_JSON", &request.shared_report_json),
        std::pair("SOJOURN_STACK_KIB", &request.fiber_stack_kib)}) {
    if (!value->empty()) setenv(setting, value->c_str(), 1);
  }
  stats_file report(request.report);
  request.options.on_hang_report = [&report,
                                    wanted = !request.report.empty()](const std::string& json) {
    std::string failure = wanted ? report.write(json) : "";
    if (!failure.empty()) complain(fmt::format("sojourn run: {}\n", failure));
  };
  for (const std::string& sentence : unknown_settings()) {
    complain(fmt::format("sojourn run: {}\n", sentence));
  }
  if (!request.hosts.empty()) return run_on_hosts(request);
  launch_plan plan = plan_launch(request.options);
  if (!plan.warning.empty()) complain(fmt::format("sojourn run: {}\n", plan.warning));
  if (request.dry_run) {
    print(describe_plan(plan));
    return 0;
  }
  stats_file file(request.stats_json);
  return report_stats(request, plan, launch(plan), file);
}

}  // namespace sojourn::tools
