// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 kmers_mpi
// Counting k-mers, for MPI.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "common/mpi/packed_words.hpp"
#include "kmers/kernel/options.hpp"

namespace {

using namespace apps::kmers;

/// Puts words into this rank's table, and has the place of each fetched some words before it is
/// needed, as our containers do.
class counting {
 public:
  explicit counting(flat_table& table) : table_(&table) {}

  void operator()(const kmer* word, const kmer* end) {
    constexpr std::size_t ahead = 16;
    std::array<std::uint64_t, ahead> hashes;
    const auto count = static_cast<std::size_t>(end - word);
    for (std::size_t i = 0; i < std::min(ahead, count); ++i) {
      hashes[i] = apps::mix64(word[i]);
      table_->prefetch(hashes[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      table_->add(word[i], hashes[i % ahead]);
      if (i + ahead < count) {
        hashes[i % ahead] = apps::mix64(word[i + ahead]);
        table_->prefetch(hashes[i % ahead]);
      }
    }
  }

 private:
  flat_table* table_;
};

int rank_of(kmer word, int ranks) {
  const std::uint64_t upper = apps::mix64(word) >> 32;
  return static_cast<int>(upper * static_cast<std::uint64_t>(ranks) >> 32);
}

std::uint64_t sum_of(std::uint64_t value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Counts k-mers of the reads of a random genome, for MPI: what kmers is compared with.\n"
      "Words for a rank are packed into messages by hand.",
      "kmers_mpi");
  settings chosen;
  apps::mpi::json_report json;
  add_options(options, chosen);
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    check_options(chosen);
    json.open();
    const int ranks = apps::mpi::rank_count();
    const int me = apps::mpi::rank_me();
    const std::vector<std::uint8_t> genome = genome_of(chosen);
    apps::mpi::stopwatch watch;
    watch.start();
    flat_table table;
    const std::size_t words = chosen.bundle_bytes / sizeof(kmer);
    {
      apps::mpi::inbox in(counting(table), words, 4);
      apps::mpi::outbox out(in, words);
      for_each_of_rank(chosen, genome, me, ranks,
                       [&](kmer word, unsigned, unsigned) { out.add(rank_of(word, ranks), word); });
      out.end();
    }
    watch.stop();
    const summary mine = table.sum();
    const summary all{sum_of(mine.counted), sum_of(mine.different), sum_of(mine.check)};
    double seconds_alone = 0;
    const bool wrong = me == 0 && all != count_alone(chosen, genome, ranks, seconds_alone);
    if (apps::mpi::broadcast(wrong)) throw apps::refusal(1, "std::unordered_map counts otherwise");
    const double seconds = watch.seconds();
    apps::mpi::say(json.readable(), report_text(chosen, "MPI", ranks, seconds, all));
    json.write(report_json(chosen, "mpi", ranks, seconds, seconds_alone, all));
    return 0;
  });
}
