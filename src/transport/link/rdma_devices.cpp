// SPDX-License-Identifier: Apache-2.0
#include "transport/link/rdma_devices.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace sojourn::detail {

std::string rdma_devices() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none))
    names.push_back(device.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace sojourn::detail
