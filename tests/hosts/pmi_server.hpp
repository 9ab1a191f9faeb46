// SPDX-License-Identifier: Apache-2.0
// The launcher's side of version 1 of PMI, for tests: one for all processes of a job, each of which
// has a socket of its own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sojourn::tests {

class pmi_server {
 public:
  explicit pmi_server(int processes) : waiting_(static_cast<std::size_t>(processes), false) {}

  struct answer {
    int to;
    std::string line;
  };
  /// What is to be written to whom, now that process `from` has said `line`.
  std::vector<answer> hear(int from, const std::string& line) {
    const std::string asked = value_of(line, "cmd");
    if (asked == "init")
      return {{from, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"}};
    if (asked == "get_my_kvsname") return {{from, "cmd=my_kvsname kvsname=kvs_1"}};
    if (asked == "finalize") {
      ++finalized_;
      return {{from, "cmd=finalize_ack"}};
    }
    if (asked == "barrier_in") return enter_barrier(from);
    const std::string key = value_of(line, "kvsname") + '/' + value_of(line, "key");
    if (asked == "put") {
      words_[key] = value_of(line, "value");
      return {{from, "cmd=put_result rc=0 msg=success"}};
    }
    const auto found = words_.find(key);
    if (found == words_.end()) return {{from, "cmd=get_result rc=-1 msg=key_not_found"}};
    return {{from, "cmd=get_result rc=0 msg=success value=" + found->second}};
  }

  int finalized() const { return finalized_; }

 private:
  static std::string value_of(const std::string& line, const std::string& key) {
    const std::size_t at = (' ' + line).find(' ' + key + '=');
    if (at == line.npos) return "";
    const std::size_t begin = at + key.size() + 1;
    return line.substr(begin, line.find(' ', begin) - begin);
  }

  std::vector<answer> enter_barrier(int from) {
    waiting_[static_cast<std::size_t>(from)] = true;
    for (const bool waits : waiting_) {
      if (!waits) return {};
    }
    std::vector<answer> all;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      waiting_[i] = false;
      all.push_back({static_cast<int>(i), "cmd=barrier_out"});
    }
    return all;
  }

  std::map<std::string, std::string> words_;
  std::vector<bool> waiting_;
  int finalized_ = 0;
};

}  // namespace sojourn::tests
