// SPDX-License-Identifier: Apache-2.0
// Version 1 of PMI: lines of key=value over a socket that the process inherits. (The wire protocol
// of MPICH, as its src/pmi speaks it; Slurm's mpi/pmi2 speaks it too.)
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "site/started_together.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t line_max = 4096;

class by_pmi final : public started_together {
 public:
  by_pmi(int socket, int number, int count) : socket_(socket), number_(number), count_(count) {
    if (ask("cmd=init pmi_version=1 pmi_subversion=1", "rc") != "0")
      throw error("the launcher refuses version 1 of PMI; `sojourn run` starts jobs without it");
    space_ = "kvsname=" + ask("cmd=get_my_kvsname", "kvsname");
  }
  ~by_pmi() override {
    try {
      ask("cmd=finalize", "cmd");
    } catch (const error&) {  // the launcher notices the closed socket
    }
    close(socket_);
  }
  by_pmi(const by_pmi&) = delete;
  by_pmi& operator=(const by_pmi&) = delete;

  int number() const override { return number_; }
  int count() const override { return count_; }

  std::vector<std::string> exchange(const std::string& word,
                                    const std::vector<int>& wanted) override {
    ++rounds_;
    ask("cmd=put " + space_ + " key=" + key_of(number_) + " value=" + word, "rc");
    ask("cmd=barrier_in", "cmd");
    std::vector<std::string> words;
    for (int i : wanted) words.push_back(ask("cmd=get " + space_ + " key=" + key_of(i), "value"));
    return words;
  }

 private:
  std::string key_of(int number) const {
    return "sojourn-" + std::to_string(rounds_) + '-' + std::to_string(number);
  }

  /// The value of `key` in the answer.
  std::string ask(const std::string& question, const std::string& key) {
    const std::string line = question + '\n';
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t n = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) lose(std::strerror(errno));
      sent += static_cast<std::size_t>(n);
    }
    std::string answer = " ";
    for (char c = 0; answer.size() < line_max;) {
      const ssize_t n = read(socket_, &c, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) lose(n == 0 ? "it was closed" : std::strerror(errno));
      if (c == '\n') break;
      answer += c;
    }
    const std::size_t at = answer.find(' ' + key + '=');
    if (at == answer.npos)
      throw error("the launcher answers \"" + question.substr(0, question.find(" value=")) +
                  "\" by \"" + printable(answer.substr(1)) + "\", which has no " + key +
                  "; `sojourn run` starts jobs without it");
    const std::size_t begin = at + key.size() + 2;
    return answer.substr(begin, answer.find(' ', begin) - begin);
  }

  [[noreturn]] static void lose(const char* why) {
    throw error(std::string("the connection to the launcher has ended (PMI_FD: ") + why +
                "): it is for one program a process, and an earlier one may have used it; "
                "SOJOURN_SITE=off makes this one a job of its own");
  }

  int socket_;
  int number_;
  int count_;
  std::string space_ = {};
  int rounds_ = 0;
};

long number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return parse_number(text == nullptr ? "" : text).value_or(-1);
}

}  // namespace

std::unique_ptr<started_together> started_by_pmi() {
  const long socket = number_of("PMI_FD");
  const long number = number_of("PMI_RANK");
  const long count = number_of("PMI_SIZE");
  if (socket < 0 || count < 2) return nullptr;
  if (number < 0 || number >= count || count > 1 << 20)
    throw error("the launcher's PMI_RANK and PMI_SIZE are no process and no number of processes");
  return std::make_unique<by_pmi>(static_cast<int>(socket), static_cast<int>(number),
                                  static_cast<int>(count));
}

}  // namespace sojourn::detail
