// SPDX-License-Identifier: Apache-2.0
// Arguments and results that own memory: docs/marshalling.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

struct entry {
  std::string title;
  std::vector<std::string> authors;
  int year;
};

struct catalogue {
  std::map<std::string, entry> entries;
  void add(const std::string& key, entry e) { entries[key] = std::move(e); }
  std::optional<entry> find(std::string_view key) const {
    auto found = entries.find(std::string(key));
    if (found == entries.end()) return std::nullopt;
    return found->second;
  }
};

void ask_for_a_paper() {
  auto c = make<catalogue>(rank_count() - 1);
  c.call<&catalogue::add>("hsieh93",
                          entry{"Computation Migration", {"Hsieh", "Wang", "Weihl"}, 1993});
  auto paper = c.call<&catalogue::find>("hsieh93");
  std::printf("%s, %d: %zu authors\n", paper->title.c_str(), paper->year, paper->authors.size());
  destroy(c);
}

class histogram {
 public:
  void count(const std::string& word) { ++counts_[word]; }
  std::size_t words() const { return counts_.size(); }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(counts_);
  }

 private:
  std::map<std::string, long> counts_;
};

void count_words_elsewhere() {
  histogram h = rpc(
                    rank_count() - 1,
                    [](const std::vector<std::string>& words) {
                      histogram found;
                      for (const std::string& w : words) found.count(w);
                      return found;
                    },
                    std::vector<std::string>{"a", "rose", "is", "a", "rose"})
                    .get();
  std::printf("%zu different words\n", h.words());
}

void add_up_where_it_arrives() {
  std::vector<double> samples(1000, 0.5);
  // Read in the message: it must not wait.
  double sum =
      rpc(
          rank_count() - 1, [](view<double> v) { return std::accumulate(v.begin(), v.end(), 0.0); },
          view(samples))
          .get();
  // Read from a buffer that stays for the call: it may.
  double again = rpc(
                     rank_count() - 1,
                     [](std::span<const double> v) {
                       yield();
                       return std::accumulate(v.begin(), v.end(), 0.0);
                     },
                     std::span<const double>(samples))
                     .get();
  std::printf("%.0f and %.0f\n", sum, again);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    ask_for_a_paper();
    count_words_elsewhere();
    add_up_where_it_arrives();
  });
}
