// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 gups_mpi --form aggregated
// GUPS for MPI.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
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

constexpr int tag_updates = 1;
constexpr int tag_end = 2;  ///< A rank's last message to another.

/// Messages with updates from anywhere, received into buffers that were posted beforehand. They are
/// matched in the order in which they were posted, so the oldest is the one to look at.
class inbox {
 public:
  /// For messages of `words` updates; `ahead` of them are posted.
  inbox(part& p, std::size_t words, std::size_t ahead)
      : part_(p), words_(words), values_(words * ahead), posted_(ahead, MPI_REQUEST_NULL) {
    if (p.ranks == 1) return;
    for (oldest_ = 0; oldest_ < ahead; ++oldest_) post();
    oldest_ = 0;
  }
  ~inbox() {
    for (MPI_Request& r : posted_) {
      if (r == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  }

  /// Applies what has come. False when nothing had.
  bool look() {
    MPI_Status status;
    int here = 0;
    MPI_Test(&posted_[oldest_], &here, &status);
    if (here == 0) return false;
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    const std::uint64_t* updates = &values_[oldest_ * words_];
    part_.apply(updates, updates + count);
    ended_ += status.MPI_TAG == tag_end;
    post();
    if (++oldest_ == posted_.size()) oldest_ = 0;
    return true;
  }
  /// Until all others have sent their last message.
  void look_until_the_end() {
    while (ended_ != part_.ranks - 1) look();
  }

 private:
  void post() {
    MPI_Irecv(&values_[oldest_ * words_], static_cast<int>(words_), MPI_UINT64_T, MPI_ANY_SOURCE,
              MPI_ANY_TAG, MPI_COMM_WORLD, &posted_[oldest_]);
  }

  part& part_;
  const std::size_t words_;
  std::vector<std::uint64_t> values_;
  std::vector<MPI_Request> posted_;
  std::size_t oldest_ = 0;
  int ended_ = 0;
};

/// A message for each update. At most as many are on their way as the benchmark's rules let a rank
/// look ahead.
void run_isend(part& p) {
  constexpr std::size_t window = 1024;
  constexpr unsigned between_looks = 8;
  inbox in(p, 1, window);
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
    send(owner, update, 1, tag_updates);
    if (next % between_looks == 0) {
      while (in.look()) {
      }
    }
  });
  for (int r = 0; r < p.ranks; ++r) {
    if (r != p.me) send(r, 0, 0, tag_end);
  }
  in.look_until_the_end();
  MPI_Waitall(static_cast<int>(window), sent.data(), MPI_STATUSES_IGNORE);
}

/// Two buffers for each rank: one is filled while the other is on its way. This rank's own updates
/// are gathered, too: no branch goes to and fro at random, and its words are updated many at a
/// time, which takes half the time where they miss the caches.
class outbox {
 public:
  outbox(part& p, inbox& in, std::size_t words)
      : part_(p), in_(in), words_(words), lanes_(static_cast<std::size_t>(p.ranks)) {
    for (lane& l : lanes_) {
      for (auto& b : l.values) b.resize(words);
      l.next = l.values[0].data();
      l.end = l.next + words;
    }
  }

  void add(int to, std::uint64_t update) {
    lane& l = lanes_[static_cast<std::size_t>(to)];
    *l.next++ = update;
    if (l.next == l.end) send(to, l, tag_updates);
  }
  void apply_own() { send(part_.me, lanes_[static_cast<std::size_t>(part_.me)], 0); }
  void send_last(int to) { send(to, lanes_[static_cast<std::size_t>(to)], tag_end); }
  void wait() {
    for (lane& l : lanes_) MPI_Waitall(2, l.sent.data(), MPI_STATUSES_IGNORE);
  }

 private:
  struct lane {
    std::uint64_t* next = nullptr;
    std::uint64_t* end = nullptr;
    std::array<std::vector<std::uint64_t>, 2> values;
    std::array<MPI_Request, 2> sent{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::size_t filling = 0;
  };

  void send(int to, lane& l, int tag) {
    std::uint64_t* first = l.values[l.filling].data();
    if (to == part_.me) {
      part_.apply(first, l.next);
      l.next = first;
      return;
    }
    MPI_Isend(first, static_cast<int>(l.next - first), MPI_UINT64_T, to, tag, MPI_COMM_WORLD,
              &l.sent[l.filling]);
    l.filling ^= 1;
    // Whoever sends looks at what has come, or two that only send would wait for each other.
    while (in_.look()) {
    }
    for (int free = 0;;) {
      MPI_Test(&l.sent[l.filling], &free, MPI_STATUS_IGNORE);
      if (free != 0) break;
      in_.look();
    }
    l.next = l.values[l.filling].data();
    l.end = l.next + words_;
  }

  part& part_;
  inbox& in_;
  const std::size_t words_;
  std::vector<lane> lanes_;
};

void run_aggregated(part& p) {
  const std::size_t words = p.chosen.bundle_bytes / sizeof(std::uint64_t);
  inbox in(p, words, 4);
  outbox out(p, in, words);
  const places of = p.of;
  update_stream stream = updates_of(p.chosen, p.me);
  for (std::uint64_t i = p.chosen.updates; i != 0; --i) {
    const std::uint64_t update = stream.next();
    out.add(of.rank_of(update), update);
  }
  out.apply_own();
  for (int r = 0; r < p.ranks; ++r) {
    if (r != p.me) out.send_last(r);
  }
  in.look_until_the_end();
  out.wait();
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
