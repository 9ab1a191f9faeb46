// SPDX-License-Identifier: Apache-2.0
// A sparse matrix times a vector, again and again: the greatest eigenvalue of a matrix.
#include <cmath>
#include <cstdio>
#include <functional>
#include <sojourn/containers.hpp>
#include <sojourn/sojourn.hpp>

using namespace sojourn;

// The matrix of a vibrating string: 2 on the diagonal, -1 beside it. Row i is vertex i, and an
// element is an arc from its column to its row.
constexpr std::size_t size = 100;
using matrix = dist_graph<double>;

// to = m * from: each rank hands on what its elements of `from` add to those of `to`.
void multiply(matrix m, dist_vector<double, cyclic> from, dist_vector<double, cyclic> to) {
  to.fill_all(0);
  finish_all([&] {
    for (const std::size_t column : m.vertices_here())
      for (const auto [row, element] : m.row_here(column))
        to.ff_update(
            row, [](double& sum, double more) { sum += more; }, element * from.here(column));
  });
}

double norm(dist_vector<double, cyclic> v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(reduce(sum, std::plus<>()));
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto m = matrix::make(size, [](auto add) {
      for (std::size_t i = static_cast<std::size_t>(rank_me()); i < size;
           i += static_cast<std::size_t>(rank_count())) {
        add(i, i, 2);
        if (i > 0) add(i, i - 1, -1);
        if (i + 1 < size) add(i, i + 1, -1);
      }
    });
    const auto v = m.make_values<double>();
    const auto next = m.make_values<double>();
    for (const std::size_t i : v.indices_here()) v.here(i) = std::sin(static_cast<double>(i * i));
    double greatest = 0;
    for (int step = 0; step < 500; ++step) {
      multiply(m, v, next);
      greatest = norm(next);
      for (const std::size_t i : v.indices_here()) v.here(i) = next.here(i) / greatest;
    }
    if (rank_me() == 0) std::printf("the greatest eigenvalue is about %.2f\n", greatest);
    barrier();
    next.destroy_all();
    v.destroy_all();
    m.destroy_all();
  });
}
