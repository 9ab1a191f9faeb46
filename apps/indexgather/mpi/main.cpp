// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 indexgather_mpi
// indexgather for MPI, aggregated by hand.
#include <array>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "indexgather/kernel/options.hpp"

namespace {

using namespace apps::indexgather;

/// Answers questions of other ranks: a message of words' places is answered by one of their values,
/// in the same order.
class answers {
 public:
  answers(const std::vector<std::uint64_t>& table, std::size_t words, int ranks, MPI_Comm replies)
      : table_(table), words_(words), replies_(replies) {
    if (ranks == 1) return;
    for (slot& s : slots_) {
      s.places.resize(words);
      s.values.resize(words);
      post(s);
    }
  }
  ~answers() {
    for (slot& s : slots_) {
      MPI_Wait(&s.sent, MPI_STATUS_IGNORE);
      if (s.posted == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&s.posted);
      MPI_Wait(&s.posted, MPI_STATUS_IGNORE);
    }
  }
  answers(const answers&) = delete;
  answers& operator=(const answers&) = delete;

  /// Answers what has come.
  void look() {
    for (;;) {
      slot& s = slots_[oldest_];
      if (s.posted == MPI_REQUEST_NULL) return;  // one rank
      MPI_Status status;
      int here = 0;
      MPI_Test(&s.posted, &here, &status);
      if (here == 0) return;
      int count = 0;
      MPI_Get_count(&status, MPI_UINT32_T, &count);
      MPI_Wait(&s.sent, MPI_STATUS_IGNORE);  // who asks has posted its receive
      for (int i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        s.values[at] = table_[s.places[at]];
      }
      MPI_Isend(s.values.data(), count, MPI_UINT64_T, status.MPI_SOURCE, status.MPI_TAG, replies_,
                &s.sent);
      post(s);
      oldest_ = (oldest_ + 1) % slots_.size();
    }
  }

 private:
  struct slot {
    std::vector<std::uint32_t> places;
    std::vector<std::uint64_t> values;
    MPI_Request posted = MPI_REQUEST_NULL;
    MPI_Request sent = MPI_REQUEST_NULL;
  };
  void post(slot& s) {
    MPI_Irecv(s.places.data(), static_cast<int>(words_), MPI_UINT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG,
              MPI_COMM_WORLD, &s.posted);
  }

  const std::vector<std::uint64_t>& table_;
  const std::size_t words_;
  MPI_Comm replies_;
  std::array<slot, 4> slots_;
  std::size_t oldest_ = 0;
};

/// Two bundles of questions to each rank: one is filled while the other's answer is awaited.
class questions {
 public:
  questions(std::vector<std::uint64_t>& found, answers& in, std::size_t words, int ranks,
            MPI_Comm replies)
      : found_(found),
        in_(in),
        words_(words),
        replies_(replies),
        lanes_(static_cast<std::size_t>(ranks)) {
    for (lane& l : lanes_) {
      for (bundle& b : l.bundles) {
        b.places.resize(words);
        b.slots.resize(words);
        b.values.resize(words);
      }
    }
  }

  void ask(int owner, std::uint32_t word, std::uint32_t slot) {
    lane& l = lanes_[static_cast<std::size_t>(owner)];
    bundle& b = l.bundles[l.filling];
    b.places[b.count] = word;
    b.slots[b.count] = slot;
    if (++b.count == words_) send(owner, l);
  }
  void wait_for_all() {
    for (std::size_t r = 0; r < lanes_.size(); ++r) {
      send(static_cast<int>(r), lanes_[r]);
      wait(lanes_[r].bundles[lanes_[r].filling ^ 1]);
    }
  }

 private:
  struct bundle {
    std::vector<std::uint32_t> places;
    std::vector<std::uint32_t> slots;
    std::vector<std::uint64_t> values;
    std::size_t count = 0;
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Request answer = MPI_REQUEST_NULL;
  };
  struct lane {
    std::array<bundle, 2> bundles;
    std::size_t filling = 0;
  };

  /// Sends what is filled, and makes the other one empty.
  void send(int owner, lane& l) {
    bundle& b = l.bundles[l.filling];
    const int tag = static_cast<int>(l.filling);
    const int count = static_cast<int>(b.count);
    if (count != 0) {
      MPI_Irecv(b.values.data(), count, MPI_UINT64_T, owner, tag, replies_, &b.answer);
      MPI_Isend(b.places.data(), count, MPI_UINT32_T, owner, tag, MPI_COMM_WORLD, &b.sent);
    }
    in_.look();
    l.filling ^= 1;
    wait(l.bundles[l.filling]);
  }
  void wait(bundle& b) {
    for (int here = 0;;) {
      MPI_Test(&b.answer, &here, MPI_STATUS_IGNORE);
      if (here != 0) break;
      in_.look();
    }
    MPI_Wait(&b.sent, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < b.count; ++i) found_[b.slots[i]] = b.values[i];
    b.count = 0;
  }

  std::vector<std::uint64_t>& found_;
  answers& in_;
  const std::size_t words_;
  MPI_Comm replies_;
  std::vector<lane> lanes_;
};

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Random reads of a table that is spread over the ranks (bale's indexgather), for MPI: what\n"
      "indexgather is compared with. Two buffers of questions for each rank in turns, answered by\n"
      "one message each.",
      "indexgather_mpi");
  settings chosen;
  std::string form = "aggregated";
  apps::mpi::json_report json;
  options.add("--form", form, "aggregated").one_of({"aggregated"});
  add_options(options, chosen);
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const int ranks = apps::mpi::rank_count();
    const int me = apps::mpi::rank_me();
    const places of(chosen);
    const std::vector<std::uint64_t> table = make_table(chosen, me);
    const std::vector<std::uint64_t> reads = make_reads(chosen, ranks, me);
    std::vector<std::uint64_t> found(reads.size());
    MPI_Comm replies = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &replies);
    apps::mpi::stopwatch watch;
    {
      // An answer has 8 bytes for each read.
      const std::size_t words = chosen.bundle_bytes / sizeof(std::uint64_t);
      answers in(table, words, ranks, replies);
      questions out(found, in, words, ranks, replies);
      watch.start();
      for (std::uint32_t i = 0; i < chosen.reads; ++i) {
        const int owner = of.rank_of(reads[i]);
        const std::uint32_t word = of.word_of(reads[i]);
        if (owner == me) {
          found[i] = table[word];
        } else {
          out.ask(owner, word, i);
        }
      }
      out.wait_for_all();
      MPI_Request everywhere = MPI_REQUEST_NULL;
      MPI_Ibarrier(MPI_COMM_WORLD, &everywhere);
      for (int done = 0; done == 0;) {
        in.look();
        MPI_Test(&everywhere, &done, MPI_STATUS_IGNORE);
      }
      watch.stop();
    }
    MPI_Comm_free(&replies);
    const std::string fault = fault_of(reads, found);
    if (!fault.empty()) fmt::print(stderr, "indexgather_mpi: rank {}: {}\n", me, fault);
    if (apps::mpi::sum(fault.empty() ? 0 : 1) > 0) {
      throw apps::refusal(1, "words were read that differ from those in the table");
    }
    const double seconds = watch.seconds();
    const auto split = watch.split(seconds_alone(chosen, me));
    const std::string name = "MPI " + form;
    apps::mpi::say(json.readable(), report_text(chosen, name, ranks, seconds, split));
    json.write(report_json(chosen, name, ranks, seconds, split));
    return 0;
  });
}
