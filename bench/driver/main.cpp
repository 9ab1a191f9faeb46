// SPDX-License-Identifier: Apache-2.0
//
// `sojourn bench NAME` ends up here: compares Sojourn with its peers on this machine.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <sojourn/launcher.hpp>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "driver/benchmarks.hpp"
#include "driver/machine.hpp"

namespace bench {

void tell_progress(const std::string& what) {
  if (isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "\r\033[K%s", what.c_str());
  else if (!what.empty())
    std::fprintf(stderr, "%s\n", what.c_str());
}

namespace {

constexpr int usage_status = 2;

/// `status`, unless what was printed could not be written.
int with_output(int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return status;
  std::fprintf(stderr, "sojourn bench: cannot write to standard output\n");
  return status == 0 ? 1 : status;
}

int run_benchmarks(const std::string& name, const settings& chosen,
                   const shared_settings& of_shared, bool as_json) {
  const installation here;
  settings complete = chosen;
  if (complete.figures.empty()) complete.figures = here.figures();
  report result;
  tell_progress("the distance of the cores");
  machine measured_on(here);
  if (name == "ping" || name == "all") bench_ping(result, here, complete);
  if (name == "migrate" || name == "all") bench_migrate(result, here, complete);
  if (name == "calls" || name == "all") bench_calls(result, here, complete);
  if (name == "threads" || name == "all") bench_threads(result, here, complete);
  if (name == "hybrid" || name == "all") bench_hybrid(result, here, complete);
  for (const std::string& application : execution_names()) {
    if (name == application || name == "all") bench_execution(result, here, complete, application);
  }
  if (name == "rpc" || name == "all") bench_rpc(result, here, complete);
  if (name == "am" || name == "all") bench_am(result, here, complete);
  if (name == "onesided" || name == "all") bench_onesided(result, here, complete);
  if (name == "collectives" || name == "all") bench_collectives(result, here, complete);
  if (name == "load" || name == "all") bench_load(result, here, complete);
  if (name == "scaling" || name == "all") bench_scaling(result, here, complete);
  if (name == "start" || name == "all") bench_start(result, here, complete);
  if (name == "uts" || name == "all") bench_uts(result, here, complete);
  if (name == "phold" || name == "all") bench_phold(result, here, complete);
  if (name == "shared" || name == "all") bench_shared(result, here, complete, of_shared);
  if (name == "gups" || name == "all") bench_gups(result, here, complete);
  for (const std::string& application : application_names()) {
    if (name == application || name == "all") {
      bench_application(result, here, complete, application);
    }
  }
  if (name == "checked" || name == "all") bench_checked(result, here, complete);
  tell_progress("the distance of the cores");
  const nlohmann::json found = measured_on.at_the_end();
  result.add_header("machine", found, measured_on.text());
  if (chosen.work.quick)
    result.add_note("A trial run: too few pairs for a figure that is worth quoting.");
  tell_progress("");
  if (as_json)
    std::printf("%s\n", result.json().dump(2).c_str());
  else if (name == "all" && chosen.work.quick)
    result.print_page();
  else
    result.print_table();
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app{"Compares Sojourn with its peers on this machine, in turns within one run.",
               "sojourn bench"};
  std::string name;
  bool as_json = false;
  bench::settings chosen;
  std::vector<std::string> names{"ping", "migrate",  "calls",       "threads", "hybrid",  "rpc",
                                 "am",   "onesided", "collectives", "load",    "scaling", "start",
                                 "uts",  "phold",    "shared",      "gups",    "checked"};
  for (const auto& applications : {bench::application_names(), bench::execution_names()}) {
    names.insert(names.end(), applications.begin(), applications.end());
  }
  app.add_option("name", name, fmt::format("{}, or all of them", fmt::join(names, ", ")))
      ->required();
  names.emplace_back("all");
  app.get_option("name")->check(CLI::IsMember(names));
  app.add_flag("--json", as_json, "Print one JSON object instead of a table");
  app.add_option("--pairs", chosen.work.pairs, "Interleaved pairs for each figure, at least 11")
      ->check(CLI::Range(bench::effort::pairs_min, 100'000))
      ->capture_default_str();
  app.add_flag("--quick", chosen.work.quick, "A short trial run with 3 pairs");
  app.add_option("--out", chosen.figures,
                 "Folder for SVG files (default: figures in the build folder, or here)");
  bench::shared_settings of_shared;
  auto* paper = app.add_flag("--paper", of_shared.paper,
                             "Of shared: tables and figures of Thitikamol and Keleher, in place of "
                             "what is compared");
  app.add_option("--applications", of_shared.applications,
                 "Of shared: some of the nine, with commas in between, or none of them")
      ->delimiter(',')
      ->check(CLI::IsMember(bench::shared_application_names()));
  app.add_option("--size", of_shared.size, "With --paper: small inputs, or those of the paper")
      ->check(CLI::IsMember({"small", "paper"}))
      ->needs(paper)
      ->capture_default_str();
  app.add_option("--ranks", of_shared.ranks, "With --paper: how many ranks")
      ->check(CLI::Range(2, 64))
      ->needs(paper)
      ->capture_default_str();
  app.add_option("--delay", of_shared.delay,
                 "With --paper: how long messages take, as SOJOURN_DELAY has it; '' for no delay")
      ->needs(paper)
      ->capture_default_str();
  app.failure_message([](const CLI::App*, const CLI::Error& wrong) {
    return sojourn::printable("sojourn bench: " + std::string(wrong.what()) + " (try --help)\n");
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return bench::with_output(app.exit(wrong) == 0 ? 0 : bench::usage_status);
  }
  if (name != "shared" && (of_shared.paper || !of_shared.applications.empty())) {
    std::fprintf(stderr,
                 "sojourn bench: --paper and --applications are options of shared, not of %s (try "
                 "--help)\n",
                 name.c_str());
    return bench::usage_status;
  }
  try {
    return bench::with_output(bench::run_benchmarks(name, chosen, of_shared, as_json));
  } catch (const std::exception& wrong) {
    bench::tell_progress("");
    std::fprintf(stderr, "sojourn bench: %s\n", wrong.what());
    return 1;
  }
}
