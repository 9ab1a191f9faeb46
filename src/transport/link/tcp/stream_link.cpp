// SPDX-License-Identifier: Apache-2.0
#include "transport/link/tcp/stream_link.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace sojourn::detail::tcp {

stream_link::stream_link() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw error(format("epoll_create1: %s", std::strerror(errno)));
}

stream_link::~stream_link() { ::close(epoll_); }

void stream_link::begin(std::span<far_rank* const> ranks) {
  peers_.resize(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) peers_[r].rank = ranks[r];
}

void stream_link::watch(int rank, int operation, bool for_room) {
  epoll_event event{};
  event.events = EPOLLIN | (for_room ? EPOLLOUT : 0u);
  event.data.u32 = static_cast<std::uint32_t>(rank);
  if (epoll_ctl(epoll_, operation, at(rank).connection->socket(), &event) != 0)
    die("epoll_ctl: %s", std::strerror(errno));
  at(rank).awaits_room = for_room;
}

void stream_link::connected(int rank, int socket) {
  at(rank).connection = std::make_unique<stream>(socket);
  watch(rank, EPOLL_CTL_ADD, false);
  push(rank);
}

void stream_link::push(int rank) {
  peer& p = at(rank);
  if (p.connection == nullptr) {
    if (p.rank->has_outgoing()) connect(rank);
    return;
  }
  p.connection->send(*p.rank);
  if (p.connection->has_unsent() != p.awaits_room)
    watch(rank, EPOLL_CTL_MOD, p.connection->has_unsent());
}

void stream_link::spoke(int rank) {
  if (last_speakers_[0] == rank) return;
  last_speakers_[1] = std::exchange(last_speakers_[0], rank);
}

void stream_link::receive(int rank) {
  peer& p = at(rank);
  if (p.connection == nullptr || p.is_broken) return;
  bool moved = false;
  if (!p.connection->receive(*p.rank, moved)) {
    p.is_broken = some_are_broken_ = true;
    return;
  }
  // What has come may say that there is room for messages that wait.
  if (moved) push(rank);
}

void stream_link::pump(bool thoroughly) {
  if (!thoroughly) {  // perhaps in a signal handler: nothing is allocated or freed
    for (int rank : last_speakers_) {
      if (rank != none) receive(rank);
    }
    return;
  }
  if (std::exchange(some_are_broken_, false)) end_broken();
  constexpr int events_at_once = 64;
  epoll_event events[events_at_once];
  const int n = epoll_wait(epoll_, events, events_at_once, 0);
  for (int i = 0; i < n; ++i) {
    if (events[i].data.u32 == other) {
      on_other();
      continue;
    }
    const int rank = static_cast<int>(events[i].data.u32);
    if ((events[i].events & ~std::uint32_t{EPOLLOUT}) != 0) {
      spoke(rank);
      receive(rank);
    }
    if ((events[i].events & EPOLLOUT) != 0) push(rank);
  }
  if (std::exchange(some_are_broken_, false)) end_broken();
}

void stream_link::end_broken() {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].is_broken) breaks(static_cast<int>(rank));
  }
}

void stream_link::watch_also(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = other;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
    die("epoll_ctl: %s", std::strerror(errno));
}

bool stream_link::has_unsent(int rank) {
  peer& p = at(rank);
  return !p.rank->is_lost() &&
         (p.rank->has_outgoing() || (p.connection != nullptr && p.connection->has_unsent()));
}

void stream_link::close(int rank) {
  peer& p = at(rank);
  if (p.connection == nullptr) return;
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, p.connection->socket(), nullptr);
  p.rank->abandon();
  p.connection.reset();
  p.awaits_room = p.is_broken = false;
}

void stream_link::breaks(int rank) {
  broken_.push_back({rank, at(rank).connection->why()});
  close(rank);
}

int stream_link::next_broken(const char*& why) {
  if (broken_.empty()) return none;
  const int rank = broken_.front().rank;
  told_why_ = std::move(broken_.front().why);
  broken_.pop_front();
  why = told_why_.c_str();
  return rank;
}

void stream_link::lose(int rank) { close(rank); }

}  // namespace sojourn::detail::tcp
