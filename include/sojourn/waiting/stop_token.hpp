// SPDX-License-Identifier: Apache-2.0
// Asking computations to stop, wherever they are.
#pragma once

#include <cstdint>

#include "sojourn/detail/running.hpp"

namespace sojourn {

namespace detail {

/// home rank : 16, number there : 48. Zero is none.
using stop_id = std::uint64_t;
enum class stop_state : std::uint8_t { none, open, requested, gone };

stop_id stop_open();
void stop_request(stop_id id);
void stop_close(stop_id id);
/// The state of the source, as far as this rank knows. The first call asks the source's rank, which
/// tells this rank of each change from then on.
stop_state stop_state_here(stop_id id);
/// Suspends while the state is `open`.
stop_state stop_wait(stop_id id);

}  // namespace detail

/// Tells a computation whether its stop_source has asked it to stop. A plain value that travels and
/// may be copied; valid on every rank.
class stop_token {
 public:
  /// A token of no source: it is never asked to stop.
  constexpr stop_token() = default;

  /// True once the source has asked to stop. Never suspends. On the first call on a rank other than
  /// the source's it may be false until a message has come back from there.
  bool stop_requested() const {
    return id_ != 0 && detail::stop_state_here(id_) == detail::stop_state::requested;
  }
  /// False when it was made by no source, or its source is gone without having asked.
  bool stop_possible() const {
    return id_ != 0 && detail::stop_state_here(id_) != detail::stop_state::gone;
  }
  /// Suspends until the source asks to stop (true), or is gone (false).
  bool wait() const { return id_ != 0 && detail::stop_wait(id_) == detail::stop_state::requested; }

 private:
  friend class stop_source;
  constexpr explicit stop_token(detail::stop_id id) : id_(id) {}
  detail::stop_id id_ = 0;
};

/// Asks the holders of its tokens to stop. An object of one rank; not copyable. When it is
/// destroyed without having asked, its tokens learn that it never will.
class stop_source {
 public:
  stop_source() : id_(detail::stop_open()) {}
  ~stop_source() { detail::stop_close(id_); }
  stop_source(const stop_source&) = delete;
  stop_source& operator=(const stop_source&) = delete;

  stop_token token() const { return stop_token(id_); }
  /// Asks the holders of tokens to stop; false when it has asked before. Never suspends.
  bool request_stop() {
    detail::check_thread();
    if (requested_) return false;
    requested_ = true;
    detail::stop_request(id_);
    return true;
  }
  bool stop_requested() const { return requested_; }

 private:
  detail::stop_id id_;
  bool requested_ = false;
};

}  // namespace sojourn
