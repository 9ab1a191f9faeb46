// SPDX-License-Identifier: Apache-2.0
//
// Parts of `sojourn bench shared --paper`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/shared.hpp"
#include "driver/svg_bars.hpp"

namespace bench {

/// What the tables and figures are made with.
struct paper_settings {
  std::vector<nine_application> applications;
  std::string size;
  int ranks;
  std::string delay;
  std::filesystem::path figures;  ///< Folder that SVG files are written to.
};
void bench_paper_of_shared(report& result, const installation& here, const paper_settings& as);

/// Figure 4: misses of caches and TLBs as the number of threads grows; by perf where the machine
/// counts them, else by cachegrind, else one line says why not.
void add_caches_figure(report& result, const installation& here, const paper_settings& as);

}  // namespace bench
