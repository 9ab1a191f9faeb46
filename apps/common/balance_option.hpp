// SPDX-License-Identifier: Apache-2.0
// `--policy none|steal|diffuse`, for programs that choose how threads are balanced.
#pragma once

#include <sojourn/sojourn.hpp>

#include <CLI/CLI.hpp>
#include <string>

namespace apps {

/// Without the option the policy is what `sojourn run --balance` says.
class balance_option {
 public:
  void add_to(CLI::App& options) {
    option_ = options
                  .add_option("--policy", text_,
                              "How threads get to ranks that have nothing to do [what "
                              "`sojourn run --balance` says]")
                  ->check(CLI::IsMember({"none", "steal", "diffuse"}));
  }
  /// Collective.
  void apply() const {
    if (!*option_) return;
    for (auto p : {sojourn::balance_policy::none, sojourn::balance_policy::steal,
                   sojourn::balance_policy::diffuse}) {
      if (text_ == sojourn::name_of(p)) sojourn::balance(p);
    }
  }

 private:
  CLI::Option* option_ = nullptr;
  std::string text_;
};

}  // namespace apps
