// SPDX-License-Identifier: Apache-2.0
// A child with a pointer in private members counts as one that may leave its rank.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
#include <vector>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

class row {
 public:
  explicit row(const std::vector<long>& v) : first_(v.data()), count_(v.size()) {}
  long sum() const {
    long all = 0;
    for (std::size_t i = 0; i < count_; ++i) all += first_[i];
    return all;
  }

 private:
  const long* first_;
  std::size_t count_;
};

[[gnu::noinline]] long sum_bad(global_ptr<cell> c, row r) {
  const row mine = r;
  const long value = c.call<&cell::get>(via::migrate);
  return value + mine.sum();
}
[[gnu::noinline]] long sum_good(global_ptr<cell> c, row r) {
  const long sum = r.sum();
  return sum + c.call<&cell::get>(via::migrate);
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1);
    const std::vector<long> v{1, 2, 3};
    std::printf("%ld\n", fork(bad ? sum_bad : sum_good, c, row(v)).get());
  });
}
