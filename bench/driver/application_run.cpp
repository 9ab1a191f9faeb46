// SPDX-License-Identifier: Apache-2.0
#include "driver/application_run.hpp"

#include <fmt/format.h>

#include <fstream>

namespace bench {

nlohmann::json application_run::figures() {
  if (const int status = process_.wait(); status != 0) {
    throw failure(fmt::format("{} ended with status {}", program_, status));
  }
  std::ifstream in(file_);
  return nlohmann::json::parse(in);
}

}  // namespace bench
