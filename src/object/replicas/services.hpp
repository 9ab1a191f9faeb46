// SPDX-License-Identifier: Apache-2.0
// What the protocol asks of the rank that it runs on. The runtime is one implementation; the tests
// have another, with all ranks in one process and every order of messages that may come about.
#pragma once

#include <cstdint>

#include "object/replicas/message.hpp"

namespace sojourn::detail::replicas {

/// How a call goes on that was told to wait.
enum class woken : std::uint8_t {
  here,   ///< What it waited for is here.
  ended,  ///< The object has been destroyed.
  lost    ///< The writer has ended.
};

class reader_services {
 public:
  virtual ~reader_services() = default;
  /// Sends a message to the writer. Never delivers anything before it returns.
  virtual void send(const message& m) = 0;
  /// The bytes that came with the message which is being looked at are what this rank reads from
  /// now on. What was read so far is no longer read, but calls may still use it.
  virtual void install(version number) = 0;
  /// This rank has no version any more that is to be read.
  virtual void forget() = 0;
  /// A call of this rank goes on when its turn comes.
  virtual void wake(std::uint64_t call, woken how) = 0;
  /// A message is impossible: ends the rank with a report.
  virtual void refuse(const message& m, const char* why) = 0;
};

class writer_services {
 public:
  virtual ~writer_services() = default;
  /// Sends a message; one that brings bytes brings those of the newest version. Never delivers
  /// anything before it returns.
  virtual void send(int to, const message& m) = 0;
  /// An update is answered when its turn comes.
  virtual void wake(std::uint64_t call) = 0;
};

}  // namespace sojourn::detail::replicas
