// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 lu
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "lu/factorization.hpp"
#include "lu/kernel/options.hpp"

int main(int argc, char** argv) {
  using namespace apps::lu;
  apps::command_line options(
      "Factors a dense matrix into L and U, in blocks that are dealt out in two dimensions. In "
      "each\n"
      "step the pivot block and then the blocks of its row and column go to those that need them,\n"
      "by calls (--form rpc) or by puts and gets (--form onesided). Checked: A - LU, or for large\n"
      "matrices what it makes of random vectors.",
      "lu");
  apps::lu::options chosen;
  form how = form::rpc;
  exchange by = exchange::send;
  apps::json_report json;
  chosen.add_to(options);
  options.add_choice("--form", how, {{"rpc", form::rpc}, {"onesided", form::one_sided}},
                     "How blocks get to other ranks");
  options.add_choice(
      "--exchange", by, {{"send", exchange::send}, {"fetch", exchange::fetch}},
      "Blocks of a step's row and column: sent when they are solved, or fetched when needed");
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const layout shape = chosen.shape(sojourn::rank_count());
    const auto r = factorize(
        {.shape = shape, .how = how, .by = by, .seed = chosen.seed, .repeats = chosen.repeats});
    const report said{.shape = shape,
                      .form = name_of(how),
                      .exchange = name_of(by),
                      .repeats = chosen.repeats,
                      .seconds = r.seconds,
                      .fastest = r.fastest,
                      .split = r.split,
                      .found = r.found};
    apps::say(json.readable(), said.text());
    json.write(said.json());
    if (const auto wrong = fault(r.found)) throw apps::refusal(1, *wrong);
    return 0;
  });
}
