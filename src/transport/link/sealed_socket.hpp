// SPDX-License-Identifier: Apache-2.0
// A connected socket over which everything goes encrypted and signed, by AES-256 in Galois/Counter
// Mode (OpenSSL's libcrypto). Somebody who reads what goes over the network learns only how much it
// is. If somebody changes, repeats or exchanges parts of it, the receiver notices.
//
// Data are sent in records: the number of bytes, these bytes encrypted, and a tag that can be
// computed only with the key. Each direction has a key of its own. The number of a record is its
// nonce. Both ends count records, so the number is not sent, and a record in the wrong place is
// refused.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/libcrypto.hpp"
#include "memory/runtime_resource.hpp"

namespace sojourn::detail {

using seal_key = std::array<unsigned char, 32>;

/// The keys of one end of a connection; the other end has them the other way round.
struct seal_keys {
  seal_key out{};
  seal_key in{};
};

/// One direction of a connection.
class seal {
 public:
  enum class direction : bool { out, in };
  static constexpr std::size_t head_bytes = 4, tag_bytes = 16;
  /// The longest text of a record.
  static constexpr std::size_t text_most = 32 << 10;
  static constexpr std::size_t record_most = head_bytes + text_most + tag_bytes;
  /// After so many records the next key is made from this one. Far fewer than would reveal
  /// something about a key.
  static constexpr std::uint64_t records_of_a_key = std::uint64_t{1} << 24;

  /// Throws sojourn::error when libcrypto cannot be loaded, or has no such cipher.
  seal(const seal_key& key, direction which, std::uint64_t records = records_of_a_key);

  /// Begins a record of so many bytes of text.
  void begin(std::byte* head, std::size_t bytes);
  /// Encrypts or decrypts the next bytes of the record. `to` and `from` may be the same place.
  void go_on(std::byte* to, const std::byte* from, std::size_t bytes);
  /// `out`: writes the tag, and returns true. `in`: returns whether the tag is right.
  bool end(std::byte* tag);

 private:
  void take_next_key();

  struct freed_by_library {
    void operator()(libcrypto::cipher_state* state) const { crypto().free_state(state); }
  };
  const libcrypto& library_;
  std::unique_ptr<libcrypto::cipher_state, freed_by_library> state_;
  seal_key key_;
  bool encrypts_;
  std::uint64_t records_of_key_;
  std::uint64_t number_ = 0;
};

class sealed_socket {
 public:
  /// `socket` must not block; the caller closes it. `memory` is used for data on their way. Throws
  /// as the constructor of seal does.
  sealed_socket(int socket, const seal_keys& keys,
                std::pmr::memory_resource* memory = std::pmr::new_delete_resource());

  /// As sendmsg(2). Returns how many bytes of the parts were taken, or -1, with errno: EAGAIN when
  /// none are taken now, another one when none will ever be. Bytes that were taken leave at once,
  /// or with later calls.
  ssize_t send(std::span<const iovec> parts);
  /// True when bytes that were taken have not left.
  bool has_unsent() const { return out_at_ != out_end_; }

  /// As recvmsg(2). Returns how many bytes came: fewer than there is room for only when no more
  /// have come; 0 at the end; or -1, with errno, which is EBADMSG for data that the other end has
  /// not sent.
  ssize_t receive(std::span<const iovec> parts);
  /// True when receive() would give something, or find something wrong, without asking the socket.
  bool has_received() const { return !left_.empty() || has_record(); }

 private:
  bool flush();
  std::size_t take_what_is_left(std::span<const iovec> parts);
  bool has_record() const;
  bool open_record(std::span<const iovec> parts, std::size_t& skip);
  void make_room();

  static constexpr std::size_t records_at_once = 4;
  static constexpr std::size_t buffer_bytes = records_at_once * seal::record_most;

  int socket_;
  seal out_seal_;
  seal in_seal_;
  plain_bytes out_;
  std::size_t out_at_ = 0;
  std::size_t out_end_ = 0;
  plain_bytes in_;
  std::size_t in_at_ = 0;
  std::size_t in_end_ = 0;
  std::span<const std::byte> left_;  ///< The rest of a record's text, in `in_`, when the record had
                                     ///< more than was asked for.
  bool is_bad_ = false;
};

}  // namespace sojourn::detail
