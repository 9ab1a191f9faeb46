// SPDX-License-Identifier: Apache-2.0
// Parts with addresses: docs/dist_objects.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <map>
#include <string>

using namespace sojourn;

// The part of a table on one rank: how often each word was seen.
class counts_of_words {
 public:
  void add(const std::string& word, long n) { counts_[word] += n; }
  long count_of(const std::string& word) const {
    const auto found = counts_.find(word);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, long> counts_;
};

rank_t keeper_of(const std::string& word) {
  return static_cast<rank_t>(word.size()) % rank_count();
}

void count_words() {
  const sharded<counts_of_words> counts = make_sharded<counts_of_words>();
  finish_all([&] {
    for (const std::string word : {"to", "be", "or", "not", "to", "be"})
      counts.on(keeper_of(word)).ff<&counts_of_words::add>(word, 1L);
  });
  if (rank_me() == 0)
    std::printf("to: %ld\n", counts.on(keeper_of("to")).call<&counts_of_words::count_of>("to"));
  counts.destroy();  // when all have come here
}

int main(int argc, char** argv) { return run(argc, argv, count_words); }
