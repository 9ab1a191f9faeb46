// SPDX-License-Identifier: Apache-2.0
// What is made of the ranks' reports: one sentence that says where the waits of a job lead, a text
// for people and JSON for programs.
#pragma once

#include <string>

#include "observe/hang_view.hpp"

namespace sojourn::detail {

struct hang_report {
  std::string sentence;  ///< Without a full stop or newline.
  std::string text;      ///< Lines, the sentence last.
  std::string json;
  bool no_main_goes_on = false;  ///< All main fibers wait for the circle, or have returned.
};

/// `speaker` stands before the first line and the sentence: "sojourn run: ".
hang_report explain(const hang_view& view, const std::string& speaker);

}  // namespace sojourn::detail
