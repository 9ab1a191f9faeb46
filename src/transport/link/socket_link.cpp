// SPDX-License-Identifier: Apache-2.0
#include "transport/link/socket_link.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/owned_descriptors.hpp"

namespace sojourn::detail {

socket_link::socket_link(std::unique_ptr<socket_source> source)
    : source_(std::move(source)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw error(format("epoll_create1: %s", std::strerror(errno)));
  own_descriptor(epoll_);
}

socket_link::~socket_link() { close_owned(epoll_); }

void socket_link::begin(std::span<far_rank* const> ranks) {
  is_wanted_.assign(ranks.size(), false);
  if (source_ != nullptr) watch(source_->descriptor(), source_number, EPOLLIN);
}

void socket_link::watch(int descriptor, std::uint32_t number, std::uint32_t events, bool again) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = number;
  if (epoll_ctl(epoll_, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) != 0)
    die("epoll_ctl: %s", std::strerror(errno));
}

void socket_link::unwatch(int descriptor) {
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void socket_link::want(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  if (source_ == nullptr || is_wanted_[r]) return;
  is_wanted_[r] = true;
  source_->want(rank);
}

void socket_link::take_connections() {
  int rank = -1;
  connection made;
  while (source_->take(rank, made)) {
    const auto r = static_cast<std::size_t>(rank);
    if (r >= is_wanted_.size()) die("a connection has come that leads to no rank of this job");
    is_wanted_[r] = true;
    connected(rank, made);
  }
}

void socket_link::serve_sockets() {
  constexpr int events_at_once = 64;
  epoll_event events[events_at_once];
  const int n = epoll_wait(epoll_, events, events_at_once, 0);
  for (int i = 0; i < n; ++i) {
    events[i].data.u32 == source_number ? take_connections()
                                        : heard(events[i].data.u32, events[i].events);
  }
}

void socket_link::tell_broken() {
  if (source_ == nullptr) return;
  const char* why = nullptr;
  for (int rank; (rank = next_broken(why)) >= 0;) source_->tell_broken(rank, why);
}

int socket_link::next_broken(const char*& why) {
  if (broken_.empty()) return -1;
  const int rank = broken_.front().rank;
  told_why_ = std::move(broken_.front().why);
  broken_.pop_front();
  why = told_why_.c_str();
  return rank;
}

}  // namespace sojourn::detail
