// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr std::uint64_t small_frame = 64;
constexpr std::uint64_t large_frame = 4096;
constexpr std::array<std::uint64_t, 5> frames{16, 64, 256, 1024, 4096};

/// What one migration ships: the message with its headers, the frame that asked for it, and the
/// registers that the switch saved below that frame.
struct shipment {
  double message_bytes = 0;
  double frame_bytes = 0;
  double register_bytes = 0;
  double fixed_bytes() const { return message_bytes - frame_bytes - register_bytes; }
};

shipment ask_shipment(worker& ours, std::uint64_t locals_bytes) {
  const std::vector<double> answer =
      ours.ask("ships", {.iterations = 100, .repeats = 1, .bytes = locals_bytes});
  if (answer.size() < 3) throw failure("bench_migrate did not say what a migration ships");
  return {answer[0], answer[1], answer[2]};
}

batch_plan plan_for(const settings& chosen, std::uint64_t bytes) {
  return {.iterations = chosen.work.quick ? 200u : 1000u, .repeats = 5, .bytes = bytes};
}

double rounded(double value) { return to_thousandths(value); }

/// The public call answers the bytes it took before its times.
double call_batch(worker& ours, const batch_plan& plan) {
  std::vector<double> answer = ours.ask("rpc_ff", plan);
  answer.erase(answer.begin());
  return median(answer);
}

samples measure_frame(worker& ours, worker& raw, const settings& chosen, std::uint64_t locals,
                      double message_bytes) {
  const batch_plan hop = plan_for(chosen, locals);
  const batch_plan message = plan_for(chosen, static_cast<std::uint64_t>(message_bytes));
  return interleave(chosen.work.rounds(),
                    {{"hop", [&] { return ours.median_of("hop", hop); }},
                     {"message", [&] { return ours.median_of("message", message); }},
                     {"ring", [&] { return raw.median_of("ring", message); }},
                     {"call", [&] { return call_batch(ours, message); }}});
}

void add_frame_table(report& result, worker& ours, worker& raw, const settings& chosen) {
  std::string text = fmt::format(
      "One migration, one way, by the size of its frame (medians, ns)\n{:>9} {:>9} {:>9} {:>9} "
      "{:>9} {:>9} {:>9}\n",
      "locals B", "ships B", "fixed B", "hop", "message", "rpc_ff", "ring");
  nlohmann::json rows = nlohmann::json::array();
  for (const std::uint64_t locals : frames) {
    const shipment ships = ask_shipment(ours, locals);
    const samples all = measure_frame(ours, raw, chosen, locals, ships.message_bytes);
    const auto of = [&](const char* name) { return median(all.find(name)->second); };
    text += fmt::format("{:>9} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f}\n", locals,
                        ships.message_bytes, ships.fixed_bytes(), of("hop"), of("message"),
                        of("call"), of("ring"));
    rows.push_back({{"locals_bytes", locals},
                    {"shipped_bytes", ships.message_bytes},
                    {"fixed_bytes", ships.fixed_bytes()},
                    {"hop_ns", rounded(of("hop"))},
                    {"message_ns", rounded(of("message"))},
                    {"rpc_ff_ns", rounded(of("call"))},
                    {"ring_ns", rounded(of("ring"))}});
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail("migrate", "by_frame", rows);
}

}  // namespace

void bench_migrate(report& result, const installation& here, const settings& chosen) {
  tell_progress("migrate: one migration");
  worker ours("bench_migrate", here.job(2, "bench_migrate"), 1);
  const std::string cpus = comma_list(ours.ask("cpus", {}));
  worker raw("peer_raw", {here.program("peer_raw"), "--cpus", cpus}, 1);

  const shipment small = ask_shipment(ours, small_frame);
  const shipment large = ask_shipment(ours, large_frame);
  const samples of_small = measure_frame(ours, raw, chosen, small_frame, small.message_bytes);
  const samples of_large = measure_frame(ours, raw, chosen, large_frame, large.message_bytes);
  result.add_ratio("migrate", "hop_over_message", "migration, 64 B of locals, over a message", 1.25,
                   compare(of_small, "hop", "message"));
  result.add_ratio("migrate", "hop_over_memcpy_ring", "the same over the raw memcpy ring", 2.0,
                   compare(of_small, "hop", "ring"));
  result.add_ratio("migrate", "hop_4KiB_over_message", "migration, 4 KiB of locals, over a message",
                   1.15, compare(of_large, "hop", "message"));
  result.add_value(
      {"migrate", "fixed_bytes", "bytes shipped beyond frame and registers",
       std::round(small.fixed_bytes() * 10) / 10, 200, fmt::format("{:.0f} B", small.message_bytes),
       fmt::format("{:.0f} B", small.frame_bytes + small.register_bytes), std::nullopt, 0});
  result.add_ratio_detail("migrate", "hop_over_rpc_ff", compare(of_small, "hop", "call"));
  result.add_ratio_detail("migrate", "hop_4KiB_over_rpc_ff", compare(of_large, "hop", "call"));
  result.add_detail("migrate", "shipped_bytes", small.message_bytes);

  tell_progress("migrate: frames of several sizes");
  add_frame_table(result, ours, raw, chosen);
  tell_progress("migrate: where the time goes");
  add_breakdown(result, ours, raw, small.message_bytes, chosen);
  add_btree_tables(result, here, chosen, ours.ask("clock", {}).front());
  add_network_figures(result, here, chosen);
}

}  // namespace bench
