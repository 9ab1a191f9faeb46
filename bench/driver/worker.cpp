// SPDX-License-Identifier: Apache-2.0
#include "driver/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "driver/measure.hpp"

namespace bench {
namespace {

constexpr int answer_timeout_ms = 60'000;
constexpr int alive_check_ms = 200;
constexpr int quit_wait_ms = 3000;

/// Makes a FIFO and opens it for both directions: that never waits for the other end, and the other
/// end sees it closed when the driver dies.
int make_fifo(const std::string& path) {
  if (mkfifo(path.c_str(), 0600) != 0) throw failure("cannot make the pipe " + path);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw failure("cannot open the pipe " + path);
  return fd;
}

std::vector<int> make_command_pipes(const std::filesystem::path& folder, int listeners) {
  std::vector<int> fds;
  for (int rank = 0; rank < listeners; ++rank)
    fds.push_back(make_fifo((folder / "commands.").string() + std::to_string(rank)));
  return fds;
}

arguments with_pipes(arguments argv, const std::filesystem::path& folder) {
  for (const std::string& word : {std::string("--commands"), (folder / "commands").string(),
                                  std::string("--answers"), (folder / "answers").string()})
    argv.push_back(word);
  return argv;
}

}  // namespace

worker::worker(std::string name, arguments argv, int listeners, const environment& extra)
    : name_(std::move(name)),
      commands_(make_command_pipes(folder_.path(), listeners)),
      answers_(make_fifo((folder_.path() / "answers").string())),
      process_(with_pipes(std::move(argv), folder_.path()), extra) {}

worker::~worker() {
  if (process_.running()) {
    for (const int fd : commands_) [[maybe_unused]]
      const ssize_t told = write(fd, "quit\n", 5);
    for (int waited_ms = 0; waited_ms < quit_wait_ms && process_.running(); waited_ms += 10)
      usleep(10'000);
  }
  for (const int fd : commands_) close(fd);
  close(answers_);
}

void worker::send(const std::string& line) {
  for (const int fd : commands_)
    if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw failure("cannot command " + name_);
}

std::string worker::receive() {
  for (int waited_ms = 0; waited_ms < answer_timeout_ms;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    pollfd ready{answers_, POLLIN, 0};
    if (poll(&ready, 1, alive_check_ms) > 0) {
      char block[4096];
      const ssize_t count = read(answers_, block, sizeof block);
      if (count > 0) received_.append(block, static_cast<std::size_t>(count));
      continue;
    }
    waited_ms += alive_check_ms;
    if (!process_.running())
      throw failure(name_ + " ended with status " + std::to_string(process_.wait()) +
                    " in the middle of a measurement");
  }
  throw failure(name_ + " has not answered for a minute");
}

void worker::tell(const std::string& operation, const batch_plan& plan) {
  std::ostringstream line;
  line << operation << ' ' << plan.iterations << ' ' << plan.repeats << ' ' << plan.bytes << '\n';
  send(line.str());
}

std::vector<double> worker::answer_to(const std::string& operation) {
  const std::string answer = receive();
  if (answer.rfind("error", 0) == 0) throw failure(name_ + ": " + answer.substr(6));
  std::istringstream words(answer);
  std::vector<double> figures;
  for (double figure; words >> figure;) figures.push_back(figure);
  if (figures.empty()) throw failure(name_ + " answered nothing to " + operation);
  return figures;
}

double worker::median_of(const std::string& operation, const batch_plan& plan) {
  return median(ask(operation, plan));
}

}  // namespace bench
