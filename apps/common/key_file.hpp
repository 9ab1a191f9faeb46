// SPDX-License-Identifier: Apache-2.0
// Keys from a file, one a line.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/application.hpp"

namespace apps {

/// The lines of the file at `path`, each once, in the order of the file; empty lines and a carriage
/// return at the end of a line are dropped.
/// Errors: refusal that names the file and the line when the file is missing, has no keys, cannot
/// be read, or a key is longer than `longest` bytes.
inline std::vector<std::string> read_keys(const std::string& path, std::size_t longest) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw refusal(2, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  std::vector<std::string> keys;
  std::unordered_set<std::string> seen;
  std::size_t line = 0;
  for (std::string key; std::getline(file, key);) {
    ++line;
    if (!key.empty() && key.back() == '\r') key.pop_back();
    if (key.empty()) continue;
    if (key.size() > longest) {
      throw refusal(2, fmt::format("{}:{}: a key of {} bytes, longer than the {} that fit", path,
                                   line, key.size(), longest));
    }
    if (seen.insert(key).second) keys.push_back(std::move(key));
  }
  if (file.bad()) {
    throw refusal(
        1, fmt::format("cannot read {} beyond line {}: {}", path, line, std::strerror(errno)));
  }
  if (keys.empty()) throw refusal(2, fmt::format("{}: no keys, it needs one a line", path));
  return keys;
}

}  // namespace apps
