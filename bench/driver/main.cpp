// SPDX-License-Identifier: Apache-2.0
//
// `sojourn bench NAME` ends up here: compares Sojourn with its peers on this machine.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <sojourn/jobs/launcher.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "driver/benchmarks.hpp"
#include "driver/machine.hpp"
#include "driver/process.hpp"
#include "driver/svg_drawing.hpp"
#include "driver/svg_ratios.hpp"

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

void run_benchmark(const std::string& name, report& result, const installation& here,
                   const settings& complete, const shared_settings& of_shared,
                   const net_settings& of_net) {
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
  if (name == "net" || name == "all") bench_net(result, here, complete, of_net);
  if (name == "policies" || name == "all") bench_policies(result, here, complete);
  if (name == "gups" || name == "all") bench_gups(result, here, complete);
  if (name == "containers" || name == "all") bench_containers(result, here, complete);
  for (const std::string& application : application_names()) {
    if (name == application || name == "all") {
      bench_application(result, here, complete, application);
    }
  }
  if (name == "checked" || name == "all") bench_checked(result, here, complete);
}

/// Draws the ratios that were found. `names`: of the benchmarks.
void draw(const report& result, const std::vector<std::string>& names, const settings& chosen,
          const std::string& machine, const std::filesystem::path& file) {
  ratio_chart what;
  const std::string all_names = fmt::format("{}", fmt::join(names, " "));
  what.title = fmt::format("sojourn bench {}", all_names);
  for (const figure& f : result.figures()) {
    if (f.value && f.range && *f.value > 0 && f.range->q1 > 0)
      what.ratios.push_back({f.what, *f.value, f.range->q1, f.range->q3, f.reach, f.at_least});
  }
  if (what.ratios.empty())
    throw failure("nothing to draw in " + file.string() + ": " + all_names + " found no ratio");
  what.below = {
      "Dots: medians of the ratios; bars: their quartiles; angles: aims, open to the side that is "
      "meant; orange: missed.",
      machine,
      fmt::format("sojourn bench {} {} --svg {}", all_names,
                  chosen.work.quick ? "--quick" : fmt::format("--pairs {}", chosen.work.pairs),
                  file.filename().string())};
  write_svg(file, what);
}

int run_benchmarks(const std::vector<std::string>& names, const settings& chosen,
                   const shared_settings& of_shared, const net_settings& of_net, bool as_json,
                   const std::filesystem::path& svg) {
  const installation here;
  settings complete = chosen;
  if (complete.figures.empty()) complete.figures = here.figures();
  report result;
  tell_progress("the distance of the cores");
  machine measured_on(here);
  for (const std::string& name : names)
    run_benchmark(name, result, here, complete, of_shared, of_net);
  tell_progress("the distance of the cores");
  const nlohmann::json found = measured_on.at_the_end();
  result.add_header("machine", found, measured_on.text());
  if (chosen.work.quick)
    result.add_note("A trial run: too few pairs for a figure that is worth quoting.");
  tell_progress("");
  if (!svg.empty()) draw(result, names, chosen, measured_on.text(), svg);
  if (as_json)
    std::printf("%s\n", result.json().dump(2).c_str());
  else if (names.front() == "all" && chosen.work.quick)
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
  std::vector<std::string> asked;
  bool as_json = false;
  std::filesystem::path svg;
  bench::settings chosen;
  std::vector<std::string> names{"ping",    "migrate", "calls",    "threads",     "hybrid",
                                 "rpc",     "am",      "onesided", "collectives", "load",
                                 "scaling", "start",   "uts",      "phold",       "shared",
                                 "net",     "gups",    "policies", "containers",  "checked"};
  for (const auto& applications : {bench::application_names(), bench::execution_names()}) {
    names.insert(names.end(), applications.begin(), applications.end());
  }
  app.add_option("names", asked,
                 fmt::format("One or several of {}; or all", fmt::join(names, ", ")))
      ->required();
  names.emplace_back("all");
  app.get_option("names")->check(CLI::IsMember(names));
  app.add_flag("--json", as_json, "Print one JSON object instead of a table");
  app.add_option("--pairs", chosen.work.pairs, "Interleaved pairs for each figure, at least 11")
      ->check(CLI::Range(bench::effort::pairs_min, 100'000))
      ->capture_default_str();
  app.add_flag("--quick", chosen.work.quick, "A short trial run with 3 pairs");
  app.add_option("--out", chosen.figures,
                 "Folder for the SVG files of papers' figures (default: figures in the build "
                 "folder, or here)");
  app.add_option("--svg", svg, "File for a picture of all ratios with their quartiles and aims");
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
  bench::net_settings of_net;
  app.add_option("--hosts", of_net.hosts, "Of net: two hosts (default: two that are this machine)")
      ->delimiter(',')
      ->expected(2);
  app.add_option("--agent", of_net.agent,
                 "Of net: what runs a command on a host, as --agent of sojourn run has it")
      ->needs("--hosts");
  app.add_option("--breaks", of_net.breaks,
                 "Of net: a command that cuts the second host off, called as COMMAND cut or pull, "
                 "and mends that, as COMMAND heal or plug; net.detected_s is measured with it")
      ->needs("--hosts");
  app.failure_message([](const CLI::App*, const CLI::Error& wrong) {
    return sojourn::printable("sojourn bench: " + std::string(wrong.what()) + " (try --help)\n");
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return bench::with_output(app.exit(wrong) == 0 ? 0 : bench::usage_status);
  }
  const auto has = [&](const char* name) { return std::ranges::find(asked, name) != asked.end(); };
  if (has("all") && asked.size() > 1) {
    std::fprintf(stderr, "sojourn bench: all are asked for, and some beside them (try --help)\n");
    return bench::usage_status;
  }
  if (!has("shared") && (of_shared.paper || !of_shared.applications.empty())) {
    std::fprintf(stderr,
                 "sojourn bench: --paper and --applications are options of shared, not of %s (try "
                 "--help)\n",
                 asked.front().c_str());
    return bench::usage_status;
  }
  try {
    if (!svg.empty()) bench::check_writable(svg);
    return bench::with_output(
        bench::run_benchmarks(asked, chosen, of_shared, of_net, as_json, svg));
  } catch (const std::exception& wrong) {
    bench::tell_progress("");
    std::fprintf(stderr, "sojourn bench: %s\n", wrong.what());
    return 1;
  }
}
