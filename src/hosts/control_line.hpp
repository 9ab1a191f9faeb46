// SPDX-License-Identifier: Apache-2.0
// The connection between the head of a job and the agent of one host: whole messages over a socket
// whose ends have proved who they are (handshake.hpp), encrypted. Nothing here waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hosts/record.hpp"
#include "transport/link/sealed_socket.hpp"

namespace sojourn::detail {

enum class control : std::uint32_t {
  // From an agent.
  introduces,  ///< The version of what follows, and the name of its host.
  asks_time,   ///< A number, which comes back with the head's clock.
  wants_plan,
  has_parts,     ///< Answers seeks: what its host has of that checkpoint (checkpoint_parts).
  listens,       ///< Where other agents reach it: address and port.
  arrived,       ///< All its ranks have: what each says of itself (rank_block).
  ends_job,      ///< A rank that failed, or ~0, and the job's exit status.
  loses,         ///< A rank of this host has ended in the middle of the job.
  wants_report,  ///< Somebody has asked for it on this host.
  refuses,       ///< A sentence: nothing runs on this host.
  rests,  ///< The number of a question, or 0, and how all its ranks sleep (watch_area::rest).
  moves,  ///< The same number: they do not all sleep.
  stands_still,  ///< None of its ranks has made progress for long: 1 when some wait.
  goes_on_again,
  waits,  ///< Answers report: what its ranks wait for (rank_view).
  ended,  ///< All its ranks have: status, and their counts.

  // From the head.
  time,         ///< The number, and now_ns().
  seeks,        ///< Folder and name of the checkpoint to go on from: what of it is there?
  plan,         ///< What to run.
  goes_on,      ///< All ranks of the job have arrived: what each says, and where each host listens.
  first,        ///< What ends_job said is why the job ends: nobody else had ended it.
  lost,         ///< A rank of another host has failed, which ends the job.
  signal,       ///< One has come to the head.
  stop,         ///< The job is over.
  still_rests,  ///< Asks whether they still do: the number of the question.
  report,       ///< Asks what the ranks wait for.
  goodbye,      ///< All ranks of all hosts have ended.
};

class control_line {
 public:
  /// Takes over the socket, which does not block.
  control_line(int socket, const seal_keys& keys);
  ~control_line();
  control_line(const control_line&) = delete;
  control_line& operator=(const control_line&) = delete;

  /// Sends at once as much as the socket takes, and the rest as move() is called.
  void send(control kind, const record_writer& fields = {});
  /// Writes and reads what can be. False when the connection has ended: messages that have come
  /// before are still there.
  bool move();

  struct message {
    control kind;
    std::string fields;
  };
  /// The next message that has come whole.
  std::optional<message> next();

  int socket() const { return socket_; }
  bool has_unsent() const {
    return out_at_ < out_.size() || (!cannot_send_ && sealed_.has_unsent());
  }
  bool has_ended() const { return has_ended_; }
  /// Why it has: for people.
  const std::string& why() const { return why_; }

 private:
  void end(std::string why);
  void write_some();
  void read_some();

  int socket_;
  sealed_socket sealed_;
  bool cannot_send_ = false;
  std::string out_;
  std::size_t out_at_ = 0;
  std::string in_;
  std::size_t in_at_ = 0;
  bool has_ended_ = false;
  std::string why_;
};

}  // namespace sojourn::detail
