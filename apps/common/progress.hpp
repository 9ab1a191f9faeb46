// SPDX-License-Identifier: Apache-2.0
// Says what goes on while a program works for long.
#pragma once

#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace apps {

/// One line on standard error, from rank 0, at most once a second and never in the first one.
class progress {
 public:
  explicit progress(std::string program) : program_(std::move(program)) {}

  double elapsed_seconds() const {
    return static_cast<double>(sojourn::now_ns() - begin_ns_) * 1e-9;
  }

  void now(const std::string& what) {
    if (sojourn::rank_me() != 0 || elapsed_seconds() - said_at_ < 1) return;
    said_at_ = elapsed_seconds();
    fmt::print(stderr, "{}: {:.0f} s, {}\n", program_, said_at_, what);
    std::fflush(stderr);
  }

 private:
  std::string program_;
  std::uint64_t begin_ns_ = sojourn::now_ns();
  double said_at_ = 0;
};

}  // namespace apps
