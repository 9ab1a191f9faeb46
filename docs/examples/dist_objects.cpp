// SPDX-License-Identifier: Apache-2.0
// An object on each rank, which find each other without a message: docs/dist_objects.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <map>
#include <string>

using namespace sojourn;

/// Some of the words of a text; each word is counted on one rank.
struct word_counts {
  std::map<std::string, long> counts;

  void add(const std::string& word) { ++counts[word]; }
  long count_of(const std::string& word) const {
    const auto found = counts.find(word);
    return found == counts.end() ? 0 : found->second;
  }
};

rank_t keeper_of(const std::string& word) {
  return static_cast<rank_t>(word.size()) % rank_count();
}

void count_words() {
  dist_object<word_counts> mine;  // sends nothing, and waits for nobody
  for (const std::string word : {"to", "be", "or", "not", "to", "be"}) {
    mine.on(keeper_of(word)).call<&word_counts::add>(word);
  }
  barrier();
  if (rank_me() == 0) {
    std::printf("to: %ld\n", mine.on(keeper_of("to")).call<&word_counts::count_of>("to"));
  }
  barrier();  // nobody asks any more: each may destroy its own
}

void find_by_name() {
  dist_object<long> limit(dist_name{"limit"}, 100L * (rank_me() + 1));
  const rank_t last = rank_count() - 1;
  const long theirs = limit.fetch(last).get();  // waits there until that rank has made its own
  const long twice =
      limit.on(last).call([](const long& value, long times) { return times * value; }, 2L);
  // A function that is given the id finds the object of the rank that it runs on.
  const long found = rpc(last, [](dist_id<long> id) { return id.here(); }, limit.id()).get();
  if (rank_me() == 0) std::printf("limits: %ld %ld %ld %ld\n", *limit, theirs, twice, found);
  barrier();
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    count_words();
    find_by_name();
  });
}
