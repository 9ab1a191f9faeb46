// SPDX-License-Identifier: Apache-2.0
// Proves over several hosts that nothing can happen in a job any more, from what their agents say.
//
// A host *rests* when all its ranks sleep: then it sends nothing. When all hosts have said that
// they rest, are asked again after the last of them has said so, and still rest as before, then all
// rested at one moment in between; and if all messages that were sent until then have been
// received, nothing can happen any more. (Mattern, Algorithms for distributed termination
// detection, 1987: two counts around one moment.)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "observe/wait_report.hpp"

namespace sojourn::detail {

class deadlock_proof {
 public:
  explicit deadlock_proof(std::size_t hosts) : hosts_(hosts) {}

  struct outcome {
    std::uint64_t question = 0;  ///< Not 0: all hosts are to be asked whether they rest.
    bool is_proven = false;
  };
  /// A host says how it rests, or, with none, that it does not: by itself, with the number 0, or as
  /// the answer to the question of that number, about the time when it was asked.
  outcome hear(std::size_t host, std::uint64_t question,
               const std::optional<watch_area::rest>& rest);

 private:
  outcome ask();

  struct host {
    std::optional<watch_area::rest> rest;
    bool still_rests = false;  ///< The answer to `question_`.
  };
  std::vector<host> hosts_;
  std::uint64_t last_question_ = 0;
  std::uint64_t question_ = 0;  ///< That has not been answered by all; 0: there is none.
};

}  // namespace sojourn::detail
