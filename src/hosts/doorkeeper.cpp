// SPDX-License-Identifier: Apache-2.0
#include "hosts/doorkeeper.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

// How long a caller has to prove who it is.
constexpr std::chrono::milliseconds patience{1000};
// More than these wait for the next turn, so that a flood of them holds up nothing else.
constexpr int callers_a_turn = 64;
constexpr std::uint64_t the_listener = ~std::uint64_t{0};

}  // namespace

doorkeeper::doorkeeper(const job_secret& secret, household& inside, listener door)
    : secret_(secret), inside_(inside), listens_(door), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) {
    const int reason = errno;
    close(listens_.socket);
    throw error(format("epoll_create1: %s", std::strerror(reason)));
  }
  watch(listens_.socket, the_listener);
}

doorkeeper::~doorkeeper() {
  for (const auto& [number, c] : callers_) close(c.socket);
  close(listens_.socket);
  close(epoll_);
}

void doorkeeper::watch(int socket, std::uint64_t number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0)
    throw error(format("epoll_ctl: %s", std::strerror(errno)));
}

std::optional<doorkeeper::time> doorkeeper::next_deadline() const {
  // All have the same time.
  if (callers_.empty()) return std::nullopt;
  return callers_.begin()->second.until;
}

void doorkeeper::serve() {
  const time now = clock::now();
  epoll_event events[64];
  const int n = epoll_wait(epoll_, events, 64, 0);
  for (int i = 0; i < n; ++i) {
    if (events[i].data.u64 == the_listener) {
      accept_callers(now);
    } else {
      go_on(events[i].data.u64);
    }
  }
  while (!callers_.empty() && now >= callers_.begin()->second.until)
    hang_up(callers_.begin()->first);
}

void doorkeeper::accept_callers(time now) {
  for (int i = 0; i < callers_a_turn; ++i) {
    const int s = accept4(listens_.socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (s < 0) return;
    // Whoever knows the secret proves it at once: the oldest does not.
    if (callers_.size() >= callers_most) hang_up(callers_.begin()->first);
    const std::uint64_t number = next_caller_++;
    callers_.try_emplace(number, secret_, s, now + patience);
    watch(s, number);
  }
}

void doorkeeper::go_on(std::uint64_t number) {
  const auto found = callers_.find(number);
  if (found == callers_.end()) return;
  caller& c = found->second;
  progress how = c.proves.go_on(c.socket);
  if (how == progress::hello_came) {
    if (!inside_.may_come(c.proves.said())) return hang_up(number);
    c.may_come = true;
    how = c.proves.go_on(c.socket);
  }
  if (how == progress::waits) return;
  if (how != progress::done) return hang_up(number);
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, c.socket, nullptr);
  const hello said = c.proves.said();
  const int socket = c.socket;
  const seal_keys keys = c.proves.keys();
  callers_.erase(found);
  inside_.has_come(said, socket, keys);
}

void doorkeeper::hang_up(std::uint64_t number) {
  const auto found = callers_.find(number);
  close(found->second.socket);
  const hello said = found->second.proves.said();
  const bool was_expected = found->second.may_come;
  callers_.erase(found);
  if (was_expected) inside_.has_gone(said);
}

}  // namespace sojourn::detail
