// SPDX-License-Identifier: Apache-2.0
// Where the parts of a table are, which every call asks and few change: docs/replicated.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

using namespace sojourn;

// Which rank keeps the words from a letter on, up to the next letter in the map.
class directory {
 public:
  rank_t keeper_of(const std::string& word) const {
    const auto after = keepers_.upper_bound(word);
    return after == keepers_.begin() ? 0 : std::prev(after)->second;
  }
  void hand_over(const std::string& from, rank_t to) { keepers_[from] = to; }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(keepers_);
  }

 private:
  std::map<std::string, rank_t> keepers_;
};

// A thousand lookups by each rank, around one change. How many of them went to rank 0.
long lookups_on_rank_0(replicated<directory> where) {
  long count = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 500) {
      barrier();
      // With versions{0}, it returns when no rank reads the version before.
      if (rank_me() == 0) where.update<&directory::hand_over>(versions{0}, "m", rank_count() - 1);
      barrier();
    }
    if (where.read<&directory::keeper_of>("zebra") == 0) ++count;
  }
  return count;
}

struct seat {
  rank_t taken_by = -1;

  bool is_free() const { return taken_by == -1; }
  void take(rank_t rank) { taken_by = rank; }
};

// bad
[[maybe_unused]] bool sit_down_bad(replicated<seat> here) {
  if (!here.read<&seat::is_free>()) return false;  // as it was, in the version of this rank
  here.update<&seat::take>(rank_me());             // another rank has taken it meanwhile
  return true;
}

// good
bool sit_down(replicated<seat> here) {
  if (!here.read<&seat::is_free>()) return false;  // costs nothing, and it is never free again
  const auto take_if_free = [](seat& newest, rank_t rank) {
    if (!newest.is_free()) return false;
    newest.take(rank);
    return true;
  };
  return here.update(take_if_free, rank_me());
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    replicated<directory> where;
    if (rank_me() == 0) where = make_replicated<directory>();
    where = broadcast(where, 0);  // a name of 16 bytes, which means the same everywhere

    const counters before = counters_now();
    barrier();  // nobody reads before all have looked
    const long count = reduce(lookups_on_rank_0(where), std::plus<>{});
    const counters used = reduce(counters_now() - before, std::plus<>{});
    if (rank_me() == 0) {
      std::printf("%ld lookups of %d went to rank 0\n", count, 1000 * rank_count());
      std::printf("%llu messages about %llu new version\n",
                  static_cast<unsigned long long>(used.replica_messages),
                  static_cast<unsigned long long>(used.versions_published));
    }
    const auto here = broadcast(rank_me() == 0 ? make_replicated<seat>() : replicated<seat>(), 0);
    const int seated = reduce(sit_down(here) ? 1 : 0, std::plus<>{});
    if (rank_me() == 0) std::printf("%d rank has the seat\n", seated);
    barrier();
    if (rank_me() == 0) where.destroy();
    if (rank_me() == 0) here.destroy();
    barrier();
  });
}
