// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 gups_mpi --form aggregated
// GUPS for MPI.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "common/mpi/packed_words.hpp"
#include "gups/kernel/options.hpp"

namespace {

using namespace apps::gups;

/// This rank's words.
struct part {
  explicit part(const settings& s)
      : chosen(s),
        ranks(apps::mpi::rank_count()),
        me(apps::mpi::rank_me()),
        of(s, ranks),
        table(new_table(s, me)) {}

  void apply(std::uint64_t update) { table[of.word_of(update)] ^= update; }
  /// Those of a message, in a loop that keeps the table's place in registers.
  void apply(const std::uint64_t* first, const std::uint64_t* last) {
    std::uint64_t* const words = table.data();
    const std::uint64_t mask = of.mask;
    for (; first != last; ++first) words[*first & mask] ^= *first;
  }

  /// Applies the updates of this rank that are its own, and calls send(owner, update) for others.
  template <class Send>
  void for_each_update(Send send) {
    update_stream stream = updates_of(chosen, me);
    for (std::uint64_t i = 0; i < chosen.updates; ++i) {
      const std::uint64_t update = stream.next();
      const int owner = of.rank_of(update);
      if (owner == me) {
        apply(update);
      } else {
        send(owner, update);
      }
    }
  }

  const settings chosen;
  const int ranks;
  const int me;
  const places of;
  std::vector<std::uint64_t> table;
};

/// What messages with updates do.
auto to_table(part& p) {
  return [&p](const std::uint64_t* first, const std::uint64_t* last) { p.apply(first, last); };
}

/// A message for each update. At most as many are on their way as the benchmark's rules let a rank
/// look ahead.
void run_isend(part& p) {
  constexpr std::size_t window = 1024;
  constexpr unsigned between_looks = 8;
  apps::mpi::inbox in(to_table(p), 1, window);
  std::vector<std::uint64_t> values(window);
  std::vector<MPI_Request> sent(window, MPI_REQUEST_NULL);
  std::size_t next = 0;
  const auto send = [&](int owner, std::uint64_t update, int count, int tag) {
    for (int free = 0;;) {
      MPI_Test(&sent[next], &free, MPI_STATUS_IGNORE);
      if (free != 0) break;
      in.look();
    }
    values[next] = update;
    MPI_Isend(&values[next], count, MPI_UINT64_T, owner, tag, MPI_COMM_WORLD, &sent[next]);
    if (++next == window) next = 0;
  };
  p.for_each_update([&](int owner, std::uint64_t update) {
    send(owner, update, 1, apps::mpi::tag_words);
    if (next % between_looks == 0) {
      while (in.look()) {
      }
    }
  });
  for (int r = 0; r < p.ranks; ++r) {
    if (r != p.me) send(r, 0, 0, apps::mpi::tag_end);
  }
  in.look_until_the_end();
  MPI_Waitall(static_cast<int>(window), sent.data(), MPI_STATUSES_IGNORE);
}

void run_aggregated(part& p) {
  const std::size_t words = p.chosen.bundle_bytes / sizeof(std::uint64_t);
  apps::mpi::inbox in(to_table(p), words, 4);
  apps::mpi::outbox out(in, words);
  const places of = p.of;
  update_stream stream = updates_of(p.chosen, p.me);
  for (std::uint64_t i = p.chosen.updates; i != 0; --i) {
    const std::uint64_t update = stream.next();
    out.add(of.rank_of(update), update);
  }
  out.end();
}

/// MPI_Accumulate on a window for each update.
void run_rma(part& p, MPI_Win window) {
  constexpr std::size_t ahead = 1024;
  std::array<std::uint64_t, ahead> values{};
  std::size_t next = 0;
  update_stream stream = updates_of(p.chosen, p.me);
  for (std::uint64_t i = 0; i < p.chosen.updates; ++i) {
    const std::uint64_t update = stream.next();
    values[next] = update;
    MPI_Accumulate(&values[next], 1, MPI_UINT64_T, p.of.rank_of(update),
                   static_cast<MPI_Aint>(p.of.word_of(update)), 1, MPI_UINT64_T, MPI_BXOR, window);
    if (++next == ahead) {
      MPI_Win_flush_local_all(window);
      next = 0;
    }
  }
  MPI_Win_flush_all(window);
}

apps::mpi::stopwatch run_form(part& p, const std::string& form) {
  apps::mpi::stopwatch watch;
  if (form == "rma") {
    std::uint64_t* words = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    const std::size_t bytes = p.table.size() * sizeof(std::uint64_t);
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), sizeof(std::uint64_t), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &words, &window);
    std::memcpy(words, p.table.data(), bytes);
    MPI_Win_lock_all(0, window);
    watch.start();
    run_rma(p, window);
    watch.stop();
    MPI_Win_unlock_all(window);
    std::memcpy(p.table.data(), words, bytes);
    MPI_Win_free(&window);
    return watch;
  }
  watch.start();
  form == "isend" ? run_isend(p) : run_aggregated(p);
  watch.stop();
  return watch;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Random updates of a table that is spread over the ranks (GUPS), for MPI: what gups is\n"
      "compared with. isend sends each update in a message of its own; aggregated fills two\n"
      "buffers for each rank in turns; rma calls MPI_Accumulate.",
      "gups_mpi");
  settings chosen;
  std::string form = "aggregated";
  apps::mpi::json_report json;
  options.add("--form", form, "isend, aggregated or rma").one_of({"isend", "aggregated", "rma"});
  add_options(options, chosen);
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    json.open();
    part p(chosen);
    const auto watch = run_form(p, form);
    const std::string fault = fault_of(count_errors(chosen, p.ranks, p.me, p.table));
    if (!fault.empty()) fmt::print(stderr, "gups_mpi: rank {}: {}\n", p.me, fault);
    if (apps::mpi::sum(fault.empty() ? 0 : 1) > 0) {
      throw apps::refusal(1, "the table is not what the updates make of it");
    }
    const double seconds = watch.seconds();
    const auto split = watch.split(seconds_alone(chosen, p.me));
    const std::string name = "MPI " + form;
    apps::mpi::say(json.readable(), report_text(chosen, name, p.ranks, seconds, split));
    json.write(report_json(chosen, name, p.ranks, seconds, split));
    return 0;
  });
}
