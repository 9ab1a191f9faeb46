// SPDX-License-Identifier: Apache-2.0
#include "hosts/switchboard.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "sojourn/errors.hpp"
#include "transport/link/agent_channel.hpp"

namespace sojourn::detail {

namespace {

using std::chrono::milliseconds;

// How long a call that fails is tried again, and how soon. One that is not answered goes on: a host
// that is stopped is not dead, and of one that is, the head tells.
constexpr milliseconds call_patience{2000};
constexpr milliseconds call_again{20};
constexpr milliseconds pass_again{10};

}  // namespace

switchboard::switchboard(const job_secret& secret, ranks_of_host here, int ranks, bool seals)
    : secret_(secret),
      here_(here),
      ranks_(ranks),
      seals_(seals),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      door_(secret, *this),
      channels_(static_cast<std::size_t>(here.count)) {
  if (epoll_ < 0) throw error(format("epoll_create1: %s", std::strerror(errno)));
  watch(door_.descriptor(), source::door, 0, EPOLLIN, false);
  for (int rank = here.first; rank < here.first + here.count; ++rank) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw error(format("no socket can be made for rank %d: %s", rank, std::strerror(errno)));
    at(rank) = {ends[0], ends[1]};
    watch(ends[0], source::channel, static_cast<std::uint32_t>(rank), EPOLLIN, false);
  }
}

switchboard::~switchboard() {
  close_ends_of_ranks();
  for (const channel& c : channels_) {
    if (c.of_agent >= 0) close(c.of_agent);
  }
  for (const auto& [p, c] : calls_) {
    if (c.socket >= 0) close(c.socket);
  }
  for (const auto& [p, socket] : passed_) close(socket);
  close(epoll_);
}

void switchboard::close_ends_of_ranks() {
  for (channel& c : channels_) {
    if (c.of_rank >= 0) close(std::exchange(c.of_rank, -1));
  }
}

rlim_t switchboard::files_needed(ranks_of_host here, int ranks) {
  const auto near = static_cast<rlim_t>(here.count);
  return near * static_cast<rlim_t>(ranks - here.count) + 2 * near + doorkeeper::files_most() + 8;
}

void switchboard::watch(int socket, source what, std::uint32_t number, std::uint32_t events,
                        bool again) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(what) << 32 | number;
  if (epoll_ctl(epoll_, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) != 0)
    throw error(format("epoll_ctl: %s", std::strerror(errno)));
}

std::optional<switchboard::time> switchboard::next_deadline() const {
  std::optional<time> next;
  auto consider = [&](time t) {
    if (t != time::max() && (!next || t < *next)) next = t;
  };
  if (const auto of_door = door_.next_deadline()) consider(*of_door);
  for (const auto& [p, c] : calls_) consider(c.again);
  if (!unpassed_.empty()) consider(clock::now() + pass_again);
  return next;
}

void switchboard::serve() {
  const time now = clock::now();
  epoll_event events[64];
  const int n = epoll_wait(epoll_, events, 64, 0);
  for (int i = 0; i < n; ++i) {
    const auto number = static_cast<std::uint32_t>(events[i].data.u64);
    switch (static_cast<source>(events[i].data.u64 >> 32)) {
      case source::door:
        break;  // below
      case source::channel:
        hear(static_cast<int>(number), now);
        break;
      case source::call:
        go_on({static_cast<int>(number) / ranks_, static_cast<int>(number) % ranks_}, now);
        break;
    }
  }
  door_.serve();
  std::vector<pair> due;
  for (const auto& [p, c] : calls_) {
    if (now >= c.again) due.push_back(p);
  }
  for (const pair& p : due) begin(p, calls_.at(p), now);
  pass_on();
}

// --- Ranks of this host

void switchboard::hear(int rank, time now) {
  rank_to_agent packet;
  int descriptor = -1;
  bool has_ended = false;
  channel& c = at(rank);
  while (c.of_agent >= 0 &&
         take_packet(c.of_agent, &packet, sizeof packet, descriptor, has_ended)) {
    if (descriptor >= 0) close(descriptor);
    if (packet.rank < 0 || packet.rank >= ranks_ || is_here(packet.rank)) continue;
    const pair p{rank, packet.rank};
    packet.why[sizeof packet.why - 1] = 0;
    if (packet.says == rank_to_agent::wants) {
      wants(p, now);
    } else {
      troubles_.push_back({p.here, p.there, true, packet.why, now});
    }
  }
  if (has_ended && c.of_agent >= 0) close(std::exchange(c.of_agent, -1));
}

void switchboard::wants(pair p, time now) {
  if (passed_.contains(p) || calls_.contains(p)) return;
  wanted_[p] = true;
  // Should the caller not prove who it is, this rank calls itself.
  if (awaited_.contains(p)) return;
  begin(p, calls_[p], now);
}

/// The rank gets the socket; this process keeps it open, too.
void switchboard::pass(pair p, int socket, const seal_keys& keys) {
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
  make_ready_for_ranks(socket);
  passed_[p] = socket;
  wanted_.erase(p);
  unpassed_.push_back({p, {socket, seals_ ? std::optional(keys) : std::nullopt}});
  pass_on();
}

void switchboard::pass_on() {
  std::erase_if(unpassed_, [this](const auto& one) {
    const auto& [p, made] = one;
    const agent_to_rank packet{p.there, seals_ ? 1u : 0u, made.keys.value_or(seal_keys{})};
    return at(p.here).of_agent < 0 ||
           send_packet(at(p.here).of_agent, &packet, sizeof packet, made.socket) ||
           errno == EPIPE || errno == ECONNRESET;
  });
}

// --- Calls to other hosts

void switchboard::begin(pair p, call& c, time now) {
  c.again = time::max();
  c.is_connected = false;
  c.proves.emplace(secret_, purpose::ranks, static_cast<std::uint32_t>(p.here),
                   static_cast<std::uint32_t>(p.there));
  c.socket = begin_to_connect(addresses_.at(static_cast<std::size_t>(p.there)));
  if (c.socket < 0) return fails(p, c, std::strerror(errno), now);
  watch(c.socket, source::call, static_cast<std::uint32_t>(p.here * ranks_ + p.there), EPOLLOUT,
        false);
}

void switchboard::fails(pair p, call& c, const std::string& why, time now) {
  if (c.socket >= 0) close(std::exchange(c.socket, -1));
  if (!c.fails_since) c.fails_since = now;
  // The other rank may have called at the same time: then its call is the one that counts.
  if (now < *c.fails_since + call_patience) {
    c.again = now + call_again;
    return;
  }
  troubles_.push_back({p.here, p.there, false, why, now});
  calls_.erase(p);
}

void switchboard::go_on(pair p, time now) {
  const auto found = calls_.find(p);
  if (found == calls_.end() || found->second.socket < 0) return;
  call& c = found->second;
  if (!c.is_connected) {
    if (const int reason = connect_failure(c.socket); reason != 0)
      return fails(p, c, std::strerror(reason), now);
    c.is_connected = true;
    watch(c.socket, source::call, static_cast<std::uint32_t>(p.here * ranks_ + p.there), EPOLLIN,
          true);
  }
  switch (c.proves->go_on(c.socket)) {
    case progress::done: {
      const int socket = c.socket;
      const seal_keys keys = c.proves->keys();
      calls_.erase(found);
      return pass(p, socket, keys);
    }
    case progress::refused:
      return fails(p, c, c.proves->why(), now);
    default:
      return;
  }
}

// --- Callers

/// Where two ranks call each other at the same time, the call of the lower one counts.
bool switchboard::may_come(const hello& said) {
  if (said.what_for != purpose::ranks || said.from >= static_cast<std::uint32_t>(ranks_) ||
      said.to >= static_cast<std::uint32_t>(ranks_))
    return false;
  const pair of = pair_of(said);
  if (!is_here(of.here) || is_here(of.there) || passed_.contains(of)) return false;
  if (calls_.contains(of) && of.here < of.there) return false;
  ++awaited_[of];
  return true;
}

void switchboard::no_longer_awaited(pair p) {
  if (--awaited_[p] == 0) awaited_.erase(p);
}

void switchboard::has_come(const hello& said, int socket, const seal_keys& keys) {
  const pair of = pair_of(said);
  no_longer_awaited(of);
  if (passed_.contains(of)) {
    close(socket);
    return;
  }
  if (const auto ours = calls_.find(of); ours != calls_.end()) {
    if (ours->second.socket >= 0) close(ours->second.socket);
    calls_.erase(ours);
  }
  pass(of, socket, keys);
}

void switchboard::has_gone(const hello& said) {
  const pair of = pair_of(said);
  no_longer_awaited(of);
  if (wanted_.contains(of)) wants(of, clock::now());
}

}  // namespace sojourn::detail
