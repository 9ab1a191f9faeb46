// SPDX-License-Identifier: Apache-2.0
// Jobs of several hosts in one process: each host has a segment of its own, and ranks of different
// ones share nothing but sockets.
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <new>
#include <vector>

#include "transport/link/tcp/stream_link.hpp"
#include "transport/shm/shm_transport.hpp"
#include "transports.hpp"

namespace conformance {

using sojourn::detail::shm::several_hosts;
using sojourn::detail::shm::shm_transport;
using sojourn::detail::tcp::stream_link;

/// Two hosts; the second has one rank more where their number is odd, and some that do nothing.
class far_job {
 public:
  static constexpr const char* name = "far";
  static constexpr bool copies_memory = false;

  explicit far_job(int ranks, std::uint32_t last_number = 0, int idle = 0)
      : ranks_(ranks), all_ranks_(ranks + idle), last_number_(last_number) {
    for (const host h : {host{0, ranks / 2}, host{ranks / 2, ranks - ranks / 2 + idle}}) {
      hosts_.push_back(h);
      hosts_.back().bytes = transport_bytes(all_ranks_, h.count);
      hosts_.back().memory = mmap(nullptr, hosts_.back().bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (hosts_.back().memory == MAP_FAILED) throw std::bad_alloc();
    }
    const auto n = static_cast<std::size_t>(ranks);
    sockets_.assign(n, std::vector<int>(n, -1));
    for (std::size_t a = 0; a < n; ++a) {
      bells_.push_back(eventfd(0, EFD_NONBLOCK));
      for (std::size_t b = a + 1; b < n; ++b) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::bad_alloc();
        sockets_[a][b] = ends[0];
        sockets_[b][a] = ends[1];
      }
    }
    ends_.resize(n);
    for (int r = 0; r < ranks; ++r) make(r);
    for (int r = 0; r < ranks; ++r) begin(r);
  }
  ~far_job() {
    ends_.clear();
    for (const auto& row : sockets_) {
      for (int s : row) close(s);
    }
    for (int b : bells_) close(b);
    for (const host& h : hosts_) munmap(h.memory, h.bytes);
  }
  far_job(const far_job&) = delete;

  void settle() {
    // As often as the sockets take a part of the longest message.
    for (int rounds = 0; rounds < 200; ++rounds) {
      for (int r = 0; r < ranks_; ++r) link_of(r).pump(true);
    }
  }
  shm_transport& at(int rank) { return *ends_[static_cast<std::size_t>(rank)].transport; }
  stream_link& link_of(int rank) { return *ends_[static_cast<std::size_t>(rank)].link; }
  sleepers asleep(int rank) const {
    return sleepers(static_cast<std::byte*>(host_of(rank).memory));
  }
  /// As a rank does that wakes this one, and loses its core before it rings.
  void ring(int rank) const {
    const std::uint64_t once = 1;
    if (write(bells_[static_cast<std::size_t>(rank)], &once, sizeof once) != sizeof once)
      std::abort();
  }
  bool is_far(int a, int b) const { return &host_of(a) != &host_of(b); }
  void attach_again(int rank) {
    make(rank);
    begin(rank);
  }

 private:
  struct host {
    int first, count;
    std::size_t bytes = 0;
    void* memory = nullptr;
  };
  struct end {
    std::unique_ptr<stream_link> link;
    std::unique_ptr<shm_transport> transport;
  };
  const host& host_of(int rank) const { return hosts_[rank < hosts_[1].first ? 0 : 1]; }
  void make(int rank) {
    const host& h = host_of(rank);
    const auto r = static_cast<std::size_t>(rank);
    auto link = std::make_unique<stream_link>();
    const several_hosts hosts{h.first, h.count, link.get(), bells_[r],
                              std::pmr::new_delete_resource()};
    ends_[r].transport = std::make_unique<shm_transport>(static_cast<std::byte*>(h.memory), rank,
                                                         all_ranks_, h.count, last_number_, &hosts);
    ends_[r].link = std::move(link);
  }
  void begin(int rank) {
    at(rank).begin();
    for (int other = 0; other < ranks_; ++other) {
      if (is_far(rank, other))
        link_of(rank).connected(
            other, dup(sockets_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)]));
    }
  }

  int ranks_;
  int all_ranks_;
  std::uint32_t last_number_;
  std::vector<host> hosts_;
  std::vector<std::vector<int>> sockets_;  ///< By this rank and the other.
  std::vector<int> bells_;
  std::vector<end> ends_;
};

/// Of a host of one rank and another of many, whose rings are shorter.
class far_job_of_unequal_hosts : public far_job {
 public:
  static constexpr const char* name = "far_unequal";
  explicit far_job_of_unequal_hosts(int ranks) : far_job(ranks, 0, 60) {}
};

/// The same near the end of messages' numbers.
class far_job_near_wrap : public far_job {
 public:
  static constexpr const char* name = "far_near_wrap";
  explicit far_job_near_wrap(int ranks) : far_job(ranks, ~std::uint32_t{0} - 5) {}
};

}  // namespace conformance
