// SPDX-License-Identifier: Apache-2.0
//
// Applications that are written three times over the same kernels: by remote calls, one-sided (the
// part of Split-C in the paper) and for MPI. Another one is a row of the table below.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <span>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int ranks = 2;

/// One way to exchange the data, in all three forms. Every run of an application takes `--form`
/// (Sojourn's alone), these options, and `--json FILE`, and says there `seconds` and `split`.
struct variant {
  std::string name;
  arguments options;
  arguments best;           ///< In their place for the best MPI form that we can write.
  arguments of_sojourn{};   ///< Besides, where the MPI forms have no such choice.
  environment extra{};      ///< For Sojourn's forms.
  int rounds_part = 1;      ///< One of so many rounds, where a run takes long.
  bool has_signal = false;  ///< There is a form of puts that are followed by signals.
};

/// An option whose values are gone through once, for a table like the paper's figure 11.
struct sweep {
  std::string option;
  arguments values;
};

/// A row of Table 10 of Chang, Czajkowski and von Eicken (1999): seconds in Split-C, CC++/Nexus and
/// CC++/MRPC on 4 and 8 processors of an IBM SP; 0 where it has none.
struct row_of_paper {
  const char* application;
  const char* variant;
  const char* title;
  double sc4, nx4, cc4, sc8, nx8, cc8;
};
constexpr std::array<row_of_paper, 6> table_10{
    {{"em3d", "base", "em3d-gp", 68, 4743, 136, 69.4, 4610, 114},
     {"em3d", "bulk", "em3d-bulk", 0.26, 2.26, 0.29, 0.16, 2.89, 0.18},
     {"water", "atomic", "water-atomic 512", 1.79, 59.2, 10.0, 1.14, 39.0, 5.54},
     {"water", "prefetch", "water-prefetch 512", 1.40, 21.1, 4.89, 0.75, 12.3, 2.58},
     {"fft", "1M", "fft 1M", 1.62, 39.5, 3.36, 0.78, 38.4, 1.80},
     {"lu", "512_send", "lu", 0.81, 0, 2.91, 0.51, 0, 2.55}}};

struct application {
  std::string name;
  std::string what;
  std::vector<variant> variants;
  sweep along;
};

/// The MPI program's best form takes the same options and one more.
variant with_best(std::string name, const arguments& options) {
  variant v{std::move(name), options, options};
  v.best.emplace_back("--best");
  return v;
}

application em3d() {
  const auto of = [](const char* name, const char* steps) {
    return with_best(name, {"--variant", name, "--remote", "100", "--steps", steps});
  };
  variant bundled = of("ghost", "1000");
  bundled.name = "bundled";
  bundled.extra = {{"SOJOURN_AGGREGATE", "on"}};
  variant bulk = of("bulk", "10000");
  bulk.has_signal = true;
  return {"em3d",
          "EM3D",
          {of("base", "50"), of("ghost", "1000"), bundled, bulk},
          {"--remote", {"10", "40", "70", "100"}}};
}

application water() {
  const auto of = [](const char* name) {
    return with_best(name, {"--variant", name, "--steps", "5"});
  };
  return {"water", "Water", {of("atomic"), of("prefetch")}, {}};
}

application fft() {
  return {"fft", "FFT of 2^20 points", {with_best("1M", {"--log2", "20", "--repeats", "15"})}, {}};
}

application lu() {
  application app{"lu", "LU in blocks of 16", {}, {}};
  for (const auto& [size, repeats] : {std::pair{"512", "15"}, {"2048", "3"}}) {
    for (const char* exchange : {"send", "fetch"}) {
      variant v =
          with_best(fmt::format("{}_{}", size, exchange), {"--size", size, "--repeats", repeats});
      v.of_sojourn = {"--exchange", exchange};
      if (v.name.starts_with("2048")) v.rounds_part = 2;
      app.variants.push_back(std::move(v));
    }
  }
  return app;
}

std::vector<application> applications() { return {em3d(), water(), fft(), lu()}; }

/// Who takes part in a round: a form, as a column of the tables.
struct form {
  std::string name;
  std::string title;
};
const std::vector<form>& forms() {
  static const std::vector<form> all{
      {"rpc_off", "rpc, share off"},      {"onesided_off", "one-sided, share off"},
      {"signal_off", "put, signal, off"}, {"rpc", "rpc"},
      {"onesided", "one-sided"},          {"mpi", "MPI"},
      {"mpi_best", "MPI, best"}};
  return all;
}
bool is_mpi(const std::string& form) { return form.rfind("mpi", 0) == 0; }

std::string milliseconds(double ns) { return fmt::format("{:.2f} ms", ns * 1e-6); }

application_run start(const installation& here, const application& app, const variant& v,
                      const std::string& form) {
  if (form == "mpi") return application_run::of_mpi(here, ranks, app.name + "_mpi", v.options);
  if (form == "mpi_best") return application_run::of_mpi(here, ranks, app.name + "_mpi", v.best);
  const bool off = form.ends_with("_off");
  arguments options{"--form", form.substr(0, form.find('_'))};
  options.insert(options.end(), v.options.begin(), v.options.end());
  options.insert(options.end(), v.of_sojourn.begin(), v.of_sojourn.end());
  environment extra = v.extra;
  extra.emplace_back("SOJOURN_SHARE", off ? "off" : "on");
  return application_run::of_sojourn(here, ranks, app.name, options, extra);
}

/// What the rounds of one variant gave.
struct outcome {
  std::string variant;
  samples times;
  std::map<std::string, std::vector<nlohmann::json>> figures;  // by form, of each round

  /// The run whose time is the median.
  const nlohmann::json& middle(const std::string& form) const {
    const std::vector<double>& all = times.find(form)->second;
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return all[i]; });
    return figures.find(form)->second[order[order.size() / 2]];
  }
};

/// Of variants that have the same MPI forms: these run once a round, for all.
std::vector<outcome> measure(const installation& here, const settings& chosen,
                             const application& app, std::span<const variant> variants,
                             bool with_mpi) {
  std::vector<outcome> results;
  std::vector<contender> contenders;
  std::map<std::string, std::vector<nlohmann::json>> figures;
  const auto add = [&](const std::string& name, const variant& v, const std::string& form) {
    contenders.push_back({name, [&, name, form] {
                            nlohmann::json run = start(here, app, v, form).figures();
                            const double ns = run.at("seconds").get<double>() * 1e9;
                            figures[name].push_back(std::move(run));
                            return ns;
                          }});
  };
  const auto name_in = [](const variant& v, const std::string& form) {
    return is_mpi(form) ? form : v.name + " " + form;
  };
  for (const variant& v : variants) {
    tell_progress(fmt::format("{}: {}", app.name, v.name));
    results.push_back({v.name, {}, {}});
    for (const form& f : forms()) {
      if (f.name == "signal_off" && !v.has_signal) continue;
      if (!is_mpi(f.name)) add(name_in(v, f.name), v, f.name);
    }
  }
  for (const form& f : forms()) {
    if (is_mpi(f.name) && with_mpi) add(f.name, variants.front(), f.name);
  }
  const int part = variants.front().rounds_part;
  const samples times = interleave((chosen.work.rounds() + part - 1) / part, contenders);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (const form& f : forms()) {
      const std::string name = name_in(variants[i], f.name);
      const auto found = times.find(name);
      if (found == times.end()) continue;
      results[i].times[f.name] = found->second;
      results[i].figures[f.name] = figures[name];
    }
  }
  return results;
}

/// The variant that does worst against another form, with details for each.
struct worst {
  std::string variant;
  comparison pairs;
};
worst compare_all(report& result, const application& app, const std::vector<outcome>& outcomes,
                  const std::string& key, const std::string& ours, const std::string& peer) {
  worst found;
  for (const outcome& o : outcomes) {
    const comparison pairs = compare(o.times, ours, peer);
    result.add_ratio_detail(app.name, key + "_" + o.variant, pairs);
    if (found.variant.empty() || pairs.ratio_median > found.pairs.ratio_median) {
      found = {o.variant, pairs};
    }
  }
  result.add_detail(app.name, key + "_worst", found.variant);
  return found;
}

void add_figure(report& result, const application& app, const std::string& key,
                const std::string& what, double reach, const worst& w) {
  result.add_ratio_of({app.name, key, fmt::format("{} ({})", what, w.variant), std::nullopt, reach,
                       milliseconds(w.pairs.ours_ns), milliseconds(w.pairs.peer_ns), std::nullopt},
                      w.pairs);
}

std::string times_table(const application& app, const std::vector<outcome>& outcomes) {
  std::string text = fmt::format("{}, {} ranks: ms, medians\n{:<10}", app.what, ranks, "variant");
  for (const form& f : forms()) text += fmt::format(" {:>20}", f.title);
  text += "\n";
  for (const outcome& o : outcomes) {
    text += fmt::format("{:<10}", o.variant);
    for (const form& f : forms()) {
      const auto found = o.times.find(f.name);
      text += found == o.times.end() ? fmt::format(" {:>20}", "-")
                                     : fmt::format(" {:>20.3f}", median(found->second) * 1e-6);
    }
    text += "\n";
  }
  text.pop_back();
  return text;
}

/// The paper's columns, and ours: the one-sided form for Split-C, calls for CC++, both without
/// shared memory; MPI is beside.
void add_table_10(report& result, const application& app, const std::vector<outcome>& outcomes) {
  const auto paper_cell = [](double seconds, double split_c) {
    if (seconds == 0) return std::string("-");
    if (seconds == split_c) return fmt::format("{:g}", seconds);
    return fmt::format("{:g} ({:.2g}x)", seconds, seconds / split_c);
  };
  std::string text = fmt::format(
      "{}: Table 10 of the paper, seconds (over Split-C)\n{:<20} {:>7} {:>12} {:>12} {:>7} {:>12} "
      "{:>12}   {:>10} {:>18} {:>18}\n",
      app.what, "", "SC4", "NX4", "CC4", "SC8", "NX8", "CC8", "one-sided", "calls", "MPI");
  nlohmann::json rows = nlohmann::json::array();
  for (const row_of_paper& p : table_10) {
    if (app.name != p.application) continue;
    const auto o = std::ranges::find(outcomes, p.variant, &outcome::variant);
    if (o == outcomes.end()) continue;
    const auto seconds = [&](const char* form) {
      const auto found = o->times.find(form);
      return found == o->times.end() ? 0 : median(found->second) * 1e-9;
    };
    const double base = seconds("onesided_off");
    const auto cell = [&](const char* form) {
      if (seconds(form) == 0) return std::string("-");
      return fmt::format("{:.4g} ({:.2g}x)", seconds(form), seconds(form) / base);
    };
    text +=
        fmt::format("{:<20} {:>7} {:>12} {:>12} {:>7} {:>12} {:>12}   {:>10.4g} {:>18} {:>18}\n",
                    p.title, paper_cell(p.sc4, p.sc4), paper_cell(p.nx4, p.sc4),
                    paper_cell(p.cc4, p.sc4), paper_cell(p.sc8, p.sc8), paper_cell(p.nx8, p.sc8),
                    paper_cell(p.cc8, p.sc8), base, cell("rpc_off"), cell("mpi"));
    rows.push_back({{"row", p.title},
                    {"variant", p.variant},
                    {"onesided_seconds", base},
                    {"rpc_seconds", seconds("rpc_off")},
                    {"mpi_seconds", seconds("mpi")},
                    {"paper_seconds",
                     {{"SC4", p.sc4},
                      {"NX4", p.nx4},
                      {"CC4", p.cc4},
                      {"SC8", p.sc8},
                      {"NX8", p.nx8},
                      {"CC8", p.cc8}}}});
  }
  if (rows.empty()) return;
  text +=
      "Ours: 2 ranks, of so many steps as the options say; the paper does not say how many its "
      "seconds are of.";
  result.add_text(text);
  result.add_detail(app.name, "table_10", rows);
}

std::string split_header(const std::string& first) {
  return fmt::format("{:<10} {:<20} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}\n", first, "form", "all",
                     "cpu", "net", "threads", "sync", "marshalling");
}
/// A bar of the paper's figures 11 and 12: percent of `whole`, the one-sided form's time.
std::string split_row(const std::string& first, const std::string& form,
                      const nlohmann::json& split, double whole) {
  const auto percent = [&](const char* part) { return split.at(part).get<double>() / whole * 100; };
  return fmt::format("{:<10} {:<20} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>12.1f}\n",
                     first, form, percent("total"), percent("cpu"), percent("net"),
                     percent("threads"), percent("sync"), percent("marshalling"));
}

void add_splits(report& result, const application& app, const std::vector<outcome>& outcomes) {
  std::string text =
      fmt::format("{}: where the time goes, percent of the one-sided form's with share off\n{}",
                  app.what, split_header("variant"));
  nlohmann::json rows = nlohmann::json::array();
  for (const outcome& o : outcomes) {
    const double whole = o.middle("onesided_off").at("split").at("total").get<double>();
    for (const form& f : forms()) {
      if (!o.times.contains(f.name)) continue;
      const nlohmann::json& split = o.middle(f.name).at("split");
      text += split_row(o.variant, f.title, split, whole);
      rows.push_back({{"variant", o.variant}, {"form", f.name}, {"split", split}});
    }
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail(app.name, "split", rows);
}

void add_sweep(report& result, const installation& here, const application& app) {
  if (app.along.option.empty()) return;
  tell_progress(fmt::format("{}: {}", app.name, app.along.option));
  std::string text =
      fmt::format("{}: the same by {}, one run each, share off, percent of the one-sided form\n{}",
                  app.what, app.along.option, split_header(app.along.option));
  nlohmann::json rows = nlohmann::json::array();
  for (const variant& v : app.variants) {
    for (const std::string& value : app.along.values) {
      variant at = v;
      const auto option = std::ranges::find(at.options, app.along.option);
      if (option == at.options.end()) {
        at.options.insert(at.options.end(), {app.along.option, value});
      } else {
        *std::next(option) = value;
      }
      double whole = 0;
      for (const char* form : {"onesided_off", "rpc_off"}) {
        const nlohmann::json split = start(here, app, at, form).figures().at("split");
        if (whole == 0) whole = split.at("total").get<double>();
        text += split_row(value, fmt::format("{}, {}", v.name, form), split, whole);
        rows.push_back(
            {{"variant", v.name}, {app.along.option, value}, {"form", form}, {"split", split}});
      }
    }
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail(app.name, "sweep", rows);
}

}  // namespace

std::vector<std::string> application_names() {
  std::vector<std::string> names;
  for (const application& app : applications()) names.push_back(app.name);
  return names;
}

void bench_application(report& result, const installation& here, const settings& chosen,
                       const std::string& name) {
  const auto all = applications();
  const application& app =
      *std::ranges::find_if(all, [&](const application& a) { return a.name == name; });
  const std::string no_mpi = here.mpi_missing(app.name + "_mpi");

  std::vector<outcome> outcomes;
  for (auto first = app.variants.begin(); first != app.variants.end();) {
    const auto behind = std::find_if(first, app.variants.end(), [&](const variant& v) {
      return v.options != first->options || v.best != first->best;
    });
    std::ranges::move(measure(here, chosen, app, {first, behind}, no_mpi.empty()),
                      std::back_inserter(outcomes));
    first = behind;
  }
  const auto against = [&](const char* key, const char* ours, const char* peer) {
    return compare_all(result, app, outcomes, key, ours, peer);
  };
  add_figure(result, app, "rpc_over_onesided", app.what + ": rpc over one-sided, share off", 1.3,
             against("rpc_over_onesided", "rpc_off", "onesided_off"));
  for (const outcome& o : outcomes) {
    if (!o.times.contains("signal_off")) continue;
    const comparison pairs = compare(o.times, "rpc_off", "signal_off");
    result.add_ratio_of(
        {app.name, "rpc_over_put_signal",
         fmt::format("{}: rpc over puts with signals, share off ({})", app.what, o.variant),
         std::nullopt, std::nullopt, milliseconds(pairs.ours_ns), milliseconds(pairs.peer_ns),
         std::nullopt},
        pairs);
  }
  const auto show = [&](const char* key, const char* ours, const char* peer) {
    const worst w = against(key, ours, peer);
    result.add_ratio_detail(app.name, key, w.pairs);
    return fmt::format("{}.{}: {} ({})", app.name, key, ratio_text(w.pairs), w.variant);
  };
  std::string shown = show("rpc_over_onesided_shared", "rpc", "onesided");
  const std::string what = app.what + ": rpc over MPI";
  if (no_mpi.empty()) {
    add_figure(result, app, "rpc_over_mpi", what, 1.0, against("rpc_over_mpi", "rpc", "mpi"));
    shown += "\n" + show("rpc_over_mpi_best", "rpc", "mpi_best");
    shown += "\n" + show("mpi_best_over_mpi", "mpi_best", "mpi");
  } else {
    result.add_missing(app.name, "rpc_over_mpi", what, 1.0, no_mpi);
  }
  result.add_text(times_table(app, outcomes));
  add_table_10(result, app, outcomes);
  result.add_text(shown);
  add_splits(result, app, outcomes);
  add_sweep(result, here, app);
}

}  // namespace bench
