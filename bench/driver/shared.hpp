// SPDX-License-Identifier: Apache-2.0
//
// Parts of `sojourn bench shared`, and what they share: runs of the nine applications.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "driver/application_run.hpp"
#include "driver/benchmarks.hpp"

namespace bench {

constexpr const char* shared_group = "shared";

struct nine_application {
  const char* name;
  const char* paper;  ///< What it is called there.
  std::size_t row;    ///< In the paper's tables.
};
/// In the order of the paper's Table 1.
constexpr std::array<nine_application, 9> the_nine{{{"barnes", "Barnes", 0},
                                                    {"adi", "Erle", 1},
                                                    {"fft3d", "FFT", 2},
                                                    {"ocean", "Ocean", 3},
                                                    {"spatial_local", "Shpatial", 4},
                                                    {"sor", "SOR", 5},
                                                    {"swm", "SWM", 6},
                                                    {"water_nsq", "WaterNsq", 7},
                                                    {"spatial", "WaterSp", 8}}};

/// Those that were asked for: all nine unless some were named.
std::vector<nine_application> those_of(const shared_settings& chosen);

/// How one of them is run.
struct nine_run {
  std::string application;
  int ranks = 2;
  int threads = 1;
  std::string protocol = "lmw";
  std::string delay{};    ///< As SOJOURN_DELAY has it; none when empty.
  int pages_a_fault = 8;  ///< At most.
  std::string size = "small";
  bool here = false;  ///< `threads` threads of one process in place of ranks.
};

/// The figures that nine writes.
/// Errors: failure when it does not end well.
nlohmann::json run_nine(const installation& here, const nine_run& what);

/// Bytes of all messages about shared memory.
double bytes_moved(const nlohmann::json& figures);
double counted(const nlohmann::json& figures, const char* counter);

/// Without ratios: 0 of nothing.
double geometric_mean(const std::vector<double>& values);

/// The nine beside threads of one process, by protocol and by number of threads.
void add_nine_figures(report& result, const installation& here, const settings& chosen,
                      const std::vector<nine_application>& which);
/// sor beside the same program written for MPI.
void add_sor_over_mpi(report& result, const installation& here, const settings& chosen);

}  // namespace bench
