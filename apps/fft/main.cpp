// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 fft
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "fft/kernel/options.hpp"
#include "fft/transform.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Transforms complex points by Fourier: a butterfly whose first steps are local in a cyclic\n"
      "layout and whose last are in a blocked one. In between each rank sends a chunk to each\n"
      "other, as arguments of calls (--form rpc) or by puts (--form onesided). Checked: against\n"
      "FFTW where it was built with it, the inverse transform, Parseval's sum and six bins.",
      "fft");
  apps::fft::options chosen;
  apps::fft::form how = apps::fft::form::rpc;
  apps::json_report json;
  chosen.add_to(options);
  options.add_choice("--form", how,
                     {{"rpc", apps::fft::form::rpc}, {"onesided", apps::fft::form::one_sided}},
                     "How chunks get to their places");
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const apps::fft::layout shape = chosen.shape(sojourn::rank_count());
    const auto r = apps::fft::transform(
        {.shape = shape, .how = how, .seed = chosen.seed, .repeats = chosen.repeats});
    const apps::fft::report report{.shape = shape,
                                   .form = apps::fft::name_of(how),
                                   .repeats = chosen.repeats,
                                   .seconds = r.seconds,
                                   .fastest = r.fastest,
                                   .split = r.split,
                                   .found = r.found};
    apps::say(json.readable(), report.text());
    json.write(report.json());
    if (const auto wrong = apps::fft::fault(shape, r.found)) throw apps::refusal(1, *wrong);
    return 0;
  });
}
