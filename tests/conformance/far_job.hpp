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
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/link/socket_link.hpp"
#include "transport/link/tcp/stream_link.hpp"
#include "transport/link/ucx/ucx_link.hpp"
#include "transport/shm_transport.hpp"
#include "transports.hpp"

namespace conformance {

using sojourn::detail::connection;
using sojourn::detail::seal_key;
using sojourn::detail::socket_link;
using sojourn::detail::shm::several_hosts;
using sojourn::detail::shm::shm_transport;

/// Two hosts; the second has one rank more where their number is odd, and some that do nothing.
class far_job {
 public:
  static constexpr const char* name = "far";
  static constexpr bool copies_memory = false;

  /// A link for the rank of that number.
  using link_maker = std::unique_ptr<socket_link>(int rank);
  static std::unique_ptr<socket_link> over_tcp(int) {
    return std::make_unique<sojourn::detail::tcp::stream_link>();
  }

  explicit far_job(int ranks, std::uint32_t last_number = 0, int idle = 0,
                   link_maker* new_link = over_tcp, bool seals = false)
      : ranks_(ranks),
        all_ranks_(ranks + idle),
        last_number_(last_number),
        new_link_(new_link),
        seals_(seals) {
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

  int ranks() const { return ranks_; }
  void settle() {
    // As often as the sockets take a part of the longest message.
    for (int rounds = 0; rounds < 200; ++rounds) {
      for (int r = 0; r < ranks_; ++r) link_of(r).pump(true);
    }
  }
  shm_transport& at(int rank) { return *ends_[static_cast<std::size_t>(rank)].transport; }
  socket_link& link_of(int rank) { return *ends_[static_cast<std::size_t>(rank)].link; }
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
    std::unique_ptr<shm_transport> transport;
    std::unique_ptr<socket_link> link;  ///< Ends first: it fills the transport's rings.
  };
  const host& host_of(int rank) const { return hosts_[rank < hosts_[1].first ? 0 : 1]; }
  void make(int rank) {
    const host& h = host_of(rank);
    const auto r = static_cast<std::size_t>(rank);
    ends_[r].link.reset();
    auto link = new_link_(rank);
    const several_hosts hosts{h.first, h.count, link.get(), bells_[r],
                              std::pmr::new_delete_resource()};
    ends_[r].transport = std::make_unique<shm_transport>(static_cast<std::byte*>(h.memory), rank,
                                                         all_ranks_, h.count, last_number_, &hosts);
    ends_[r].link = std::move(link);
  }
  void begin(int rank) {
    at(rank).begin();
    for (int other = 0; other < ranks_; ++other) {
      if (!is_far(rank, other)) continue;
      connection made{
          dup(sockets_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)])};
      if (seals_) made.keys = {key(rank, other), key(other, rank)};
      link_of(rank).connected(other, made);
    }
  }
  static seal_key key(int from, int to) {
    return {static_cast<unsigned char>(from), static_cast<unsigned char>(to)};
  }

  int ranks_;
  int all_ranks_;
  std::uint32_t last_number_;
  link_maker* new_link_;
  bool seals_;
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

/// The same with all that goes over the sockets encrypted.
class far_sealed_job : public far_job {
 public:
  static constexpr const char* name = "far_sealed";
  explicit far_sealed_job(int ranks) : far_job(ranks, 0, 0, over_tcp, true) {}
};

/// Over UCX, whose TCP both ends use here.
class ucx_job : public far_job {
 public:
  static constexpr const char* name = "far_ucx";
  static std::unique_ptr<socket_link> over_ucx(int rank) {
    setenv("UCX_TLS", "tcp", 1);
    std::string why_not;
    auto link = sojourn::detail::ucx::make_link(rank, nullptr, why_not);
    if (link == nullptr) throw std::runtime_error("UCX: " + why_not);
    return link;
  }
  static bool is_here() {
    std::string why_not;
    return !sojourn::detail::ucx::version(why_not).empty();
  }
  explicit ucx_job(int ranks) : far_job(ranks, 0, 0, over_ucx) { open_ways(); }
  void attach_again(int rank) {
    far_job::attach_again(rank);
    open_ways();
  }

  /// Until all that has left has come. What the other rank has no room for stays.
  void settle() {
    for (int rounds = 0, still = 0; still < 3; ++rounds) {
      ASSERT_LT(rounds, 100'000) << "what was sent does not come";
      sojourn::detail::link::parts all;
      for (int r = 0; r < ranks(); ++r) {
        link_of(r).pump(true);
        const auto moved = link_of(r).moved();
        all.sent += moved.sent;
        all.came += moved.came;
      }
      const bool moves = all.sent != all.came || all.sent != sent_;
      sent_ = all.sent;
      still = moves ? 0 : still + 1;
      if (rounds > 10) usleep(50);
    }
  }

 private:
  /// Sockets between the workers are connected when both ends have taken part for a while.
  void open_ways() {
    for (int rounds = 0; rounds < 40; ++rounds) {
      far_job::settle();
      usleep(500);
    }
  }

  std::uint64_t sent_ = 0;
};

/// Tests of all jobs; a job that needs what is not installed here is left out.
template <class Job>
struct transport_test : testing::Test {
  void SetUp() override {
    if constexpr (requires { Job::is_here(); }) {
      if (!Job::is_here()) GTEST_SKIP() << "UCX is not installed here";
    }
  }
};

}  // namespace conformance
