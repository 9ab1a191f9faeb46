// SPDX-License-Identifier: Apache-2.0
// What two processes of a job say on a TCP connection before anything else. Each proves that it
// knows the job's secret; before that, all that a stranger can bring the other one to do is to read
// one message of a fixed length into a place of that length, and to answer it once.
//
//     asking side                                             accepting side
//       hello: magic, version, what for, from, to, nonce    ->
//                                       <-  challenge: nonce, HMAC(secret, "s" hello nonce)
//       answer: HMAC(secret, "c" hello nonce)               ->
//                                       <-  welcome: 'w'
//
// Then both sides can make the same two keys, one for each direction of the connection, of the
// secret and what has been said (keys()).
//
// The letters tell the sides apart, so that nobody passes by sending a proof back to its maker, and
// each side adds a nonce, so that nobody passes with a recorded one. A proof holds for what the
// hello asks for and for nothing else.
//
// Integers travel as they lie in memory: the hosts of a job run the same code, so they have one
// byte order. A host of the other order reads another magic number, and is refused.
//
// A connection takes no memory but these objects. Neither side has a limit of time: whoever calls
// them closes connections that take too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hosts/proof.hpp"
#include "transport/link/sealed_socket.hpp"

namespace sojourn::detail {

enum class purpose : std::uint32_t {
  agent = 1,  ///< An agent speaks to the head; `from` is the number of its host.
  ranks = 2,  ///< `from` and `to` are ranks.
};

struct hello {
  static constexpr std::uint64_t right_magic = 0x31304e52554f4a53;  // "SJOURN01" in memory
  static constexpr std::uint32_t right_version = 2;

  std::uint64_t magic = right_magic;
  std::uint32_t version = right_version;
  purpose what_for{};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  nonce fresh{};
};

struct challenge {
  nonce fresh{};
  proof known{};
};

// They are sent as they are, and no byte of them may be undefined.
static_assert(std::has_unique_object_representations_v<hello> && sizeof(hello) == 40);
static_assert(std::has_unique_object_representations_v<challenge> && sizeof(challenge) == 48);

enum class progress {
  waits,       ///< More must come: call again when the socket is readable.
  hello_came,  ///< See accepting.
  done,     ///< The other side knows the secret. What comes next belongs to the connection's user.
  refused,  ///< It does not, or the connection has ended: close it.
};

/// The side that has accepted the connection.
class accepting {
 public:
  explicit accepting(const job_secret& secret) : secret_(secret) {}

  /// Reads and writes what can be read and written now. Says hello_came once, when a hello that is
  /// in order is there: the caller looks at said() and closes the socket, or calls again at once,
  /// which sends the challenge. Throws an error where no proof can be made (prove, new_nonce).
  progress go_on(int socket);

  /// The hello, which proves nothing until go_on() has said done. Requires: may_tell().
  const hello& said() const { return hello_; }
  /// A hello that is in order has come.
  bool may_tell() const { return is_hello_here_; }
  /// For what comes next. Requires: go_on() has said done. Throws as it does.
  seal_keys keys() const;

 private:
  enum class step : unsigned char { hello, challenge, answer, done, refused };

  progress end_with(progress result);

  job_secret secret_;
  hello hello_;
  nonce fresh_{};
  proof answer_{};
  std::size_t have_ = 0;  ///< How many bytes are there of what is read.
  step at_ = step::hello;
  bool is_hello_here_ = false;
};

/// The side that has made the connection.
class asking {
 public:
  /// Throws an error if there are no random bytes.
  asking(const job_secret& secret, purpose what_for, std::uint32_t from, std::uint32_t to);

  /// The first call is to come when the socket is connected, that is, writable and without an
  /// error; it sends the hello. Never says hello_came. Throws as accepting::go_on does.
  progress go_on(int socket);

  /// For what comes next. Requires: go_on() has said done. Throws as it does.
  seal_keys keys() const;
  /// Why go_on() said refused: for people. "" if it did not.
  const char* why() const { return why_; }
  /// It said refused because the other side speaks as it should, and does not know the secret.
  bool met_stranger() const { return met_stranger_; }

 private:
  enum class step : unsigned char { hello, challenge, welcome, done, refused };

  progress refuse(const char* why);
  progress broken(const char* why_closed);

  job_secret secret_;
  hello hello_;
  challenge challenge_;
  char welcome_ = 0;
  std::size_t have_ = 0;  ///< How many bytes are there of what is read.
  step at_ = step::hello;
  const char* why_ = "";
  bool met_stranger_ = false;
};

/// Has the kernel end this connection within 2 s when the other host, or the way to it, is gone,
/// whether data are on their way or not. It is for connections whose other end reads at all times:
/// the kernel also ends one whose other end is well, but has read nothing for 2 to 4 s although its
/// buffers are full, for which 128 KiB suffice. A socket that is not TCP works as before.
void keep_watch_of(int socket);

/// For a connection between ranks, which may read nothing for as long as they compute: nothing that
/// waits to be sent leaves late, and the kernel ends one over which nothing goes, and no answer
/// comes either, within 8 s. That a host is gone the head finds out earlier.
void make_ready_for_ranks(int socket);

}  // namespace sojourn::detail
