// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace sojourn::detail {

std::optional<long> parse_number(std::string_view text) {
  long value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string own_file() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "";
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string read_field(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() <= name.size() || line.compare(0, name.size(), name) != 0 ||
        line[name.size()] != ':') {
      continue;
    }
    std::size_t start = line.find_first_not_of(" \t", name.size() + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::vector<std::string> control_group_folders(std::string_view controller,
                                               const std::string& groups) {
  std::vector<std::string> folders;
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path", "0::/path"
    std::size_t first = line.find(':');
    std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string listed = ',' + controllers + ',';
    if (controller.empty() ? !controllers.empty()
                           : listed.find(',' + std::string(controller) + ',') == listed.npos) {
      continue;
    }
    std::string root =
        "/sys/fs/cgroup" + (!controllers.empty()                          ? '/' + controllers
                            : access("/sys/fs/cgroup/unified", F_OK) == 0 ? "/unified"
                                                                          : "");
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    while (true) {
      folders.push_back(root + path);
      std::size_t slash = path.rfind('/');
      if (slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return folders;
}

std::optional<long> control_group_limit(const std::string& unified_file,
                                        std::string_view controller,
                                        const std::string& older_file) {
  std::optional<long> least;
  auto consider = [&](const std::string& path) {
    std::optional<long> value = parse_number(read_line(path));  // "max" is not a number
    if (value && (!least || *value < *least)) least = value;
  };
  for (const std::string& folder : control_group_folders("")) consider(folder + "/" + unified_file);
  for (const std::string& folder : control_group_folders(controller)) {
    consider(folder + "/" + older_file);
  }
  return least;
}

}  // namespace sojourn::detail
