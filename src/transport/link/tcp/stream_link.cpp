// SPDX-License-Identifier: Apache-2.0
#include "transport/link/tcp/stream_link.hpp"

#include <sys/epoll.h>

#include <utility>

namespace sojourn::detail::tcp {

void stream_link::begin(std::span<far_rank* const> ranks) {
  socket_link::begin(ranks);
  peers_.resize(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) peers_[r].rank = ranks[r];
}

void stream_link::watch_socket(int rank, bool for_room, bool again) {
  watch(at(rank).connection->socket(), static_cast<std::uint32_t>(rank),
        EPOLLIN | (for_room ? EPOLLOUT : 0u), again);
  at(rank).awaits_room = for_room;
}

void stream_link::connected(int rank, const connection& made) {
  at(rank).connection = std::make_unique<stream>(made);
  watch_socket(rank, false, false);
  push(rank);
}

void stream_link::push(int rank) {
  peer& p = at(rank);
  if (p.connection == nullptr) {
    if (p.rank->has_outgoing()) want(rank);
    return;
  }
  if (is_left_for_later(p)) {
    p.is_unpushed = some_are_unpushed_ = true;
    return;
  }
  p.connection->send(*p.rank);
  if (p.connection->has_unsent() != p.awaits_room)
    watch_socket(rank, p.connection->has_unsent(), true);
}

void stream_link::spoke(int rank) {
  if (last_speakers_[0] == rank) return;
  last_speakers_[1] = std::exchange(last_speakers_[0], rank);
}

void stream_link::receive(int rank) {
  peer& p = at(rank);
  if (p.connection == nullptr || p.is_broken || is_left_for_later(p)) return;
  bool moved = false;
  if (!p.connection->receive(*p.rank, moved)) {
    p.is_broken = some_are_broken_ = true;
    return;
  }
  // The received frames may say that there is room for messages that wait.
  if (moved) push(rank);
}

void stream_link::push_unpushed() {
  some_are_unpushed_ = false;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (std::exchange(peers_[r].is_unpushed, false)) push(static_cast<int>(r));
  }
}

void stream_link::pump(bool thoroughly) {
  if (some_are_unpushed_ && handler_in_ != interrupted::library) push_unpushed();
  if (!thoroughly) {  // perhaps in a signal handler, so nothing may be allocated or freed
    for (int rank : last_speakers_) {
      if (rank != none) receive(rank);
    }
    return;
  }
  if (std::exchange(some_are_broken_, false)) end_broken();
  serve_sockets();
  if (std::exchange(some_are_broken_, false)) end_broken();
  tell_broken();
}

void stream_link::heard(std::uint32_t number, std::uint32_t events) {
  const int rank = static_cast<int>(number);
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) {
    spoke(rank);
    receive(rank);
  }
  if ((events & EPOLLOUT) != 0) push(rank);
}

void stream_link::end_broken() {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (!peers_[r].is_broken) continue;
    const int rank = static_cast<int>(r);
    note_broken(rank, peers_[r].connection->why());
    close(rank);
  }
}

bool stream_link::has_unsent(int rank) {
  peer& p = at(rank);
  return !p.rank->is_lost() &&
         (p.rank->has_outgoing() || (p.connection != nullptr && p.connection->has_unsent()));
}

void stream_link::close(int rank) {
  peer& p = at(rank);
  if (p.connection == nullptr) return;
  unwatch(p.connection->socket());
  p.rank->abandon();
  p.connection.reset();
  p.awaits_room = p.is_broken = false;
}

void stream_link::lose(int rank) { close(rank); }

}  // namespace sojourn::detail::tcp
