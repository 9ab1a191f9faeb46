// SPDX-License-Identifier: Apache-2.0
// PageRank of a small graph: each page hands its weight on to those that it links to.
#include <cmath>
#include <cstdio>
#include <sojourn/containers/dist_vector.hpp>
#include <sojourn/sojourn.hpp>
#include <utility>
#include <vector>

using namespace sojourn;

constexpr std::size_t pages = 1000;

// Where a page links to: every third one to page 7, all to two others.
std::vector<std::size_t> links_of(std::size_t page) {
  std::vector<std::size_t> links = {page * 13 % pages, (page * page + 5) % pages};
  if (page % 3 == 0) links.push_back(7);
  return links;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto weight = dist_vector<double>::make(pages, 1.0 / pages);
    const auto coming = dist_vector<double>::make(pages);
    for (int step = 0; step < 30; ++step) {
      finish_all([&] {
        for (const std::size_t page : weight.indices_here()) {
          const std::vector<std::size_t> links = links_of(page);
          const double share = weight.here(page) / static_cast<double>(links.size());
          for (const std::size_t to : links)
            coming.ff_update(to, [](double& sum, double more) { sum += more; }, share);
        }
      });
      for (const std::size_t page : weight.indices_here())
        weight.here(page) = 0.15 / pages + 0.85 * std::exchange(coming.here(page), 0.0);
      barrier();  // nobody hands on to a page whose weight is still being read
    }
    if (rank_me() == 0) std::printf("page 7 has %.4f of the weight\n", weight.get(7));
    barrier();
    coming.destroy_all();
    weight.destroy_all();
  });
}
