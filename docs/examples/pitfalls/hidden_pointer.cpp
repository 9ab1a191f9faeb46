// SPDX-License-Identifier: Apache-2.0
// An argument with an address in private members, which the compiler does not see.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>
using namespace sojourn;

// bad
class row {
 public:
  explicit row(const std::vector<double>& v) : first_(v.data()), count_(v.size()) {}
  double sum() const { return std::accumulate(first_, first_ + count_, 0.0); }

 private:
  const double* first_;  // of a vector of this rank
  std::size_t count_;
};
double sum_bad(rank_t r, const std::vector<double>& v) {
  return rpc(r, [](row x) { return x.sum(); }, row(v)).get();
}

// good
double sum_good(rank_t r, const std::vector<double>& v) {
  auto sum = [](std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0); };
  return rpc(r, sum, std::span<const double>(v)).get();
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    const std::vector<double> v{1, 2, 3};
    std::printf("%g\n", (bad ? sum_bad : sum_good)(rank_count() - 1, v));
  });
}
