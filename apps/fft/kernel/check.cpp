// SPDX-License-Identifier: Apache-2.0
#include "fft/kernel/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#if defined(SOJOURN_APPS_FFTW)
#include <fftw3.h>
#endif

namespace apps::fft {

namespace {

double distance(const std::vector<complex>& a, const std::vector<complex>& b) {
  long double apart = 0;
  long double length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::norm(a[i] - b[i]);
    length += std::norm(b[i]);
  }
  return static_cast<double>(std::sqrt(apart / length));
}

std::vector<complex> inverse(const layout& l, const std::vector<complex>& spectrum) {
  std::vector<complex> conjugates(spectrum);
  for (complex& c : conjugates) c = std::conj(c);
  cyclic_steps(l.points(), 0).run(conjugates.data());
  std::vector<complex> points(spectrum.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[reversed(i, l.log2_points)] = std::conj(conjugates[i]) / static_cast<double>(l.points());
  }
  return points;
}

complex by_definition(const std::vector<complex>& points, std::size_t bin) {
  const double n = static_cast<double>(points.size());
  long double re = 0;
  long double im = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const complex term = points[i] * root(static_cast<double>(i * bin % points.size()) / n);
    re += term.real();
    im += term.imag();
  }
  return {static_cast<double>(re), static_cast<double>(im)};
}

}  // namespace

void put_in_order(const layout& l, int processor, const complex* block,
                  std::vector<complex>& spectrum) {
  for (std::size_t i = 0; i < l.share(); ++i) spectrum[l.bin(processor, i)] = block[i];
}

errors compare(const layout& l, std::uint64_t seed, const std::vector<complex>& spectrum) {
  std::vector<complex> points(l.points());
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = signal(seed, i);

  errors e;
  e.inverse = distance(inverse(l, spectrum), points);

  long double of_points = 0;
  long double of_bins = 0;
  for (const complex& p : points) of_points += std::norm(p);
  for (const complex& b : spectrum) of_bins += std::norm(b);
  of_bins /= static_cast<long double>(l.points());
  e.energy = static_cast<double>(std::abs(of_bins - of_points) / of_points);

  const double typical = std::sqrt(static_cast<double>(of_bins));
  const std::uint64_t some[] = {
      0, 1, l.points() / 2, mix64(seed), mix64(seed + 1), mix64(seed + 2)};
  for (std::uint64_t k : some) {
    const std::size_t bin = k % l.points();
    e.bins = std::max(e.bins, std::abs(spectrum[bin] - by_definition(points, bin)) / typical);
  }

#if defined(SOJOURN_APPS_FFTW)
  std::vector<complex> wanted(points.size());
  fftw_plan plan = fftw_plan_dft_1d(
      static_cast<int>(points.size()), reinterpret_cast<fftw_complex*>(points.data()),
      reinterpret_cast<fftw_complex*>(wanted.data()), FFTW_FORWARD, FFTW_ESTIMATE);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
  e.fftw = distance(spectrum, wanted);
#endif
  return e;
}

std::optional<std::string> fault(const layout& l, const errors& e) {
  // Not "greater than": that is false of what is no number.
  const auto is_good = [&](double error) { return error <= bound(l); };
  if (is_good(e.fftw.value_or(0)) && is_good(e.inverse) && is_good(e.energy) && is_good(e.bins)) {
    return std::nullopt;
  }
  return fmt::format("the spectrum is wrong: {}", to_text(l, e));
}

std::string to_text(const layout& l, const errors& e) {
  return fmt::format(
      "relative errors {}inverse {:.1e}, energy {:.1e}, six bins {:.1e}; allowed are {:.1e}",
      e.fftw ? fmt::format("FFTW {:.1e}, ", *e.fftw) : "", e.inverse, e.energy, e.bins, bound(l));
}

}  // namespace apps::fft
