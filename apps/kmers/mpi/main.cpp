// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 kmers_mpi
// Counting k-mers, for MPI.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "kmers/kernel/options.hpp"

namespace {

using namespace apps::kmers;

constexpr std::size_t posted_ahead = 4;
constexpr int tag_words = 1;
constexpr int tag_end = 2;  ///< A rank's last message to another.

/// This rank's part of the counts, messages with words from anywhere, received into buffers that
/// were posted beforehand, and two buffers for each rank, of which one is filled while the other is
/// on its way. (As gups_mpi does it, which was quicker than MPI_Alltoallv of as many words.)
class counter {
 public:
  counter(const settings& s, int ranks, int me)
      : ranks_(ranks),
        me_(me),
        words_(s.bundle_bytes / sizeof(kmer)),
        received_(words_ * posted_ahead),
        lanes_(static_cast<std::size_t>(ranks)) {
    posted_.fill(MPI_REQUEST_NULL);
    if (ranks > 1)
      for (std::size_t i = 0; i < posted_.size(); ++i) post(i);
    for (lane& l : lanes_) {
      for (auto& b : l.words) b.resize(words_);
      l.next = l.words[0].data();
      l.end = l.next + words_;
    }
  }
  ~counter() {
    for (MPI_Request& r : posted_) {
      if (r == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  }

  void add(kmer word) {
    const std::uint64_t upper = apps::mix64(word) >> 32;
    const auto to = static_cast<std::size_t>(upper * static_cast<std::uint64_t>(ranks_) >> 32);
    lane& l = lanes_[to];
    *l.next++ = word;
    if (l.next == l.end) send(static_cast<int>(to), tag_words);
  }
  void end() {
    send(me_, tag_words);
    for (int r = 0; r < ranks_; ++r)
      if (r != me_) send(r, tag_end);
    while (ended_ != ranks_ - 1) look();
    for (lane& l : lanes_) MPI_Waitall(2, l.sent.data(), MPI_STATUSES_IGNORE);
  }
  summary sum() const { return table_.sum(); }

 private:
  struct lane {
    kmer* next = nullptr;
    kmer* end = nullptr;
    std::array<std::vector<kmer>, 2> words;
    std::array<MPI_Request, 2> sent{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::size_t filling = 0;
  };

  /// Has the place of each word fetched some words before it is needed, as our containers do.
  void apply(const kmer* words, std::size_t count) {
    constexpr std::size_t ahead = 16;
    std::array<std::uint64_t, ahead> hashes;
    for (std::size_t i = 0; i < std::min(ahead, count); ++i) {
      hashes[i] = apps::mix64(words[i]);
      table_.prefetch(hashes[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      table_.add(words[i], hashes[i % ahead]);
      if (i + ahead < count) {
        hashes[i % ahead] = apps::mix64(words[i + ahead]);
        table_.prefetch(hashes[i % ahead]);
      }
    }
  }

  void post(std::size_t i) {
    MPI_Irecv(&received_[i * words_], static_cast<int>(words_), MPI_UINT64_T, MPI_ANY_SOURCE,
              MPI_ANY_TAG, MPI_COMM_WORLD, &posted_[i]);
  }
  bool look() {
    MPI_Status status;
    int here = 0;
    MPI_Test(&posted_[oldest_], &here, &status);
    if (here == 0) return false;
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    apply(&received_[oldest_ * words_], static_cast<std::size_t>(count));
    ended_ += status.MPI_TAG == tag_end;
    post(oldest_);
    oldest_ = (oldest_ + 1) % posted_.size();
    return true;
  }
  void send(int to, int tag) {
    lane& l = lanes_[static_cast<std::size_t>(to)];
    kmer* const first = l.words[l.filling].data();
    if (to == me_) {
      apply(first, static_cast<std::size_t>(l.next - first));
      l.next = first;
      return;
    }
    MPI_Isend(first, static_cast<int>(l.next - first), MPI_UINT64_T, to, tag, MPI_COMM_WORLD,
              &l.sent[l.filling]);
    l.filling ^= 1;
    // Whoever sends looks at what has come, or two that only send would wait for each other.
    while (look()) {
    }
    for (int free = 0;;) {
      MPI_Test(&l.sent[l.filling], &free, MPI_STATUS_IGNORE);
      if (free != 0) break;
      look();
    }
    l.next = l.words[l.filling].data();
    l.end = l.next + words_;
  }

  const int ranks_;
  const int me_;
  const std::size_t words_;
  std::array<MPI_Request, posted_ahead> posted_;
  std::vector<kmer> received_;
  std::size_t oldest_ = 0;
  int ended_ = 0;
  std::vector<lane> lanes_;
  flat_table table_;
};

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
    counter counts(chosen, ranks, me);
    for_each_of_rank(chosen, genome, me, ranks,
                     [&](kmer word, unsigned, unsigned) { counts.add(word); });
    counts.end();
    watch.stop();
    const summary mine = counts.sum();
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
