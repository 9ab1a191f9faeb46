// SPDX-License-Identifier: Apache-2.0
// `--policy none|steal|diffuse`, for programs that choose how threads are balanced.
#pragma once

#include <sojourn/sojourn.hpp>

#include <optional>
#include <string>

#include "common/command_line.hpp"

namespace apps {

/// Without the option the policy is what `sojourn run --balance` says.
class balance_option {
 public:
  void add_to(command_line& options) {
    option_ = options.add("--policy", text_, "How threads get to ranks that have nothing to do")
                  .one_of({"none", "steal", "diffuse"})
                  .default_text("what `sojourn run --balance` says");
  }
  /// Collective.
  void apply() const {
    if (!option_->given()) return;
    for (auto p : {sojourn::balance_policy::none, sojourn::balance_policy::steal,
                   sojourn::balance_policy::diffuse}) {
      if (text_ == sojourn::name_of(p)) sojourn::balance(p);
    }
  }

 private:
  std::optional<option> option_;
  std::string text_;
};

}  // namespace apps
