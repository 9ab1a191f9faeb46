// SPDX-License-Identifier: Apache-2.0
// Listens at a port of its own, and lets in only who proves that it knows the job's secret
// (handshake.hpp). A stranger costs a place among a limited number, for a second. Nothing here
// waits.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "hosts/addresses.hpp"
#include "hosts/handshake.hpp"

namespace sojourn::detail {

class doorkeeper {
 public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  /// Whoever the callers want to speak with.
  class household {
   public:
    virtual ~household() = default;
    /// Whether somebody may call who says this, and has proved nothing yet. If so, one of the other
    /// two is called later for this caller.
    virtual bool may_come(const hello& said) = 0;
    /// It has proved it. The socket is the household's now, and `keys` are for what goes over it.
    virtual void has_come(const hello& said, int socket, const seal_keys& keys) = 0;
    /// It has not, and has gone.
    virtual void has_gone(const hello& said) = 0;
  };

  /// Throws sojourn::error. `inside` stays as long as this is used. Closes the listener's socket.
  doorkeeper(const job_secret& secret, household& inside, listener door = listen_anywhere());
  ~doorkeeper();
  doorkeeper(const doorkeeper&) = delete;
  doorkeeper& operator=(const doorkeeper&) = delete;

  int port() const { return listens_.port; }
  /// Readable when serve() has something to do.
  int descriptor() const { return epoll_; }
  std::optional<time> next_deadline() const;
  void serve();

  /// Descriptors that may be open here, at most.
  static constexpr rlim_t files_most() { return callers_most + 2; }

 private:
  struct caller {
    caller(const job_secret& secret, int s, time now) : proves(secret), socket(s), until(now) {}
    accepting proves;
    int socket;
    time until;
    bool may_come = false;
  };

  void watch(int socket, std::uint64_t number);
  void accept_callers(time now);
  void go_on(std::uint64_t number);
  void hang_up(std::uint64_t number);

  static constexpr std::size_t callers_most = 256;

  job_secret secret_;
  household& inside_;
  listener listens_;
  int epoll_;
  std::map<std::uint64_t, caller> callers_;  ///< In the order in which they came.
  std::uint64_t next_caller_ = 0;
};

}  // namespace sojourn::detail
