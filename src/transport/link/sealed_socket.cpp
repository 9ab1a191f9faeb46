// SPDX-License-Identifier: Apache-2.0
#include "transport/link/sealed_socket.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

constexpr const char* refusal =
    "OpenSSL's libcrypto refuses AES-256-GCM, which encrypts what hosts of a job say to each "
    "other; "
    "look whether its settings (openssl.cnf, OPENSSL_CONF) forbid it";

unsigned char* bytes_at(std::byte* at) { return reinterpret_cast<unsigned char*>(at); }
const unsigned char* bytes_at(const std::byte* at) {
  return reinterpret_cast<const unsigned char*>(at);
}

/// A place in a list of parts.
class place {
 public:
  explicit place(std::span<const iovec> parts, std::size_t skip = 0) : parts_(parts) {
    while (skip != 0) skip -= next(skip).size();
  }
  /// Returns the next bytes, at most `most` of them, and goes past them. Empty at the end.
  std::span<std::byte> next(std::size_t most) {
    while (!parts_.empty() && at_ == parts_.front().iov_len) {
      parts_ = parts_.subspan(1);
      at_ = 0;
    }
    if (parts_.empty()) return {};
    const std::size_t n = std::min(most, parts_.front().iov_len - at_);
    std::byte* const from = static_cast<std::byte*>(parts_.front().iov_base) + at_;
    at_ += n;
    return {from, n};
  }

 private:
  std::span<const iovec> parts_;
  std::size_t at_ = 0;
};

std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t sum = 0;
  for (const iovec& p : parts) sum += p.iov_len;
  return sum;
}

}  // namespace

// --- One direction

seal::seal(const seal_key& key, direction which, std::uint64_t records)
    : library_(crypto()),
      state_(library_.new_state()),
      key_(key),
      encrypts_(which == direction::out),
      records_of_key_(records) {
  if (state_ == nullptr || library_.begin(state_.get(), library_.aes_256_gcm(), nullptr,
                                          key_.data(), nullptr, encrypts_ ? 1 : 0) != 1)
    throw error(refusal);
}

/// So nobody who learns a key can decrypt what was sent with an earlier one.
void seal::take_next_key() {
  constexpr unsigned char text[] = "the next key";
  unsigned int bytes = 0;
  seal_key next;
  if (library_.hmac(library_.sha256(), key_.data(), static_cast<int>(key_.size()), text,
                    sizeof text, next.data(), &bytes) == nullptr ||
      library_.begin(state_.get(), nullptr, nullptr, next.data(), nullptr, encrypts_ ? 1 : 0) != 1)
    die("%s", refusal);
  key_ = next;
}

void seal::begin(std::byte* head, std::size_t bytes) {
  if (number_ != 0 && number_ % records_of_key_ == 0) take_next_key();
  unsigned char nonce[12] = {};
  std::memcpy(nonce, &number_, sizeof number_);
  ++number_;
  const auto length = static_cast<std::uint32_t>(bytes);
  std::memcpy(head, &length, sizeof length);
  int done = 0;
  if (library_.begin(state_.get(), nullptr, nullptr, nullptr, nonce, encrypts_ ? 1 : 0) != 1 ||
      library_.update(state_.get(), nullptr, &done, bytes_at(head), head_bytes) != 1)
    die("%s", refusal);
}

void seal::go_on(std::byte* to, const std::byte* from, std::size_t bytes) {
  int done = 0;
  if (bytes != 0 && library_.update(state_.get(), bytes_at(to), &done, bytes_at(from),
                                    static_cast<int>(bytes)) != 1)
    die("%s", refusal);
}

bool seal::end(std::byte* tag) {
  unsigned char nothing[16];
  int done = 0;
  if (!encrypts_) {
    return library_.control(state_.get(), libcrypto::set_tag, tag_bytes, tag) == 1 &&
           library_.end(state_.get(), nothing, &done) == 1;
  }
  if (library_.end(state_.get(), nothing, &done) != 1 ||
      library_.control(state_.get(), libcrypto::get_tag, tag_bytes, tag) != 1)
    die("%s", refusal);
  return true;
}

// --- The socket

sealed_socket::sealed_socket(int socket, const seal_keys& keys, std::pmr::memory_resource* memory)
    : socket_(socket),
      out_seal_(keys.out, seal::direction::out),
      in_seal_(keys.in, seal::direction::in),
      out_(memory, buffer_bytes),
      in_(memory, buffer_bytes) {}

/// Returns false, with errno, when something is left.
bool sealed_socket::flush() {
  while (has_unsent()) {
    const ssize_t n =
        ::send(socket_, out_.get() + out_at_, out_end_ - out_at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      out_at_ += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      return false;
    }
  }
  out_at_ = out_end_ = 0;
  return true;
}

ssize_t sealed_socket::send(std::span<const iovec> parts) {
  if (!flush()) return -1;
  place from(parts);
  std::size_t left = bytes_of(parts);
  std::size_t taken = 0;
  while (left != 0 && buffer_bytes - out_end_ >= seal::record_most) {
    const std::size_t bytes = std::min(left, seal::text_most);
    std::byte* to = out_.get() + out_end_;
    out_seal_.begin(to, bytes);
    to += seal::head_bytes;
    for (std::size_t done = 0; done != bytes;) {
      const std::span<std::byte> text = from.next(bytes - done);
      out_seal_.go_on(to + done, text.data(), text.size());
      done += text.size();
    }
    out_seal_.end(to + bytes);
    out_end_ += seal::head_bytes + bytes + seal::tag_bytes;
    left -= bytes;
    taken += bytes;
  }
  // The rest leaves with later calls. If the socket is broken, the next call says so.
  (void)flush();
  return static_cast<ssize_t>(taken);
}

/// True when a whole record has come, or one with a length that no record has.
bool sealed_socket::has_record() const {
  if (in_end_ - in_at_ < seal::head_bytes) return false;
  std::uint32_t bytes;
  std::memcpy(&bytes, in_.get() + in_at_, sizeof bytes);
  return bytes > seal::text_most || in_end_ - in_at_ >= seal::head_bytes + bytes + seal::tag_bytes;
}

/// Decrypts the next record into the parts, from byte `skip` of them on, and adds to `skip` how
/// much they took. The rest of the text goes to left_. Returns false when the other end has not
/// sent this record: then the parts have changed, and `skip` has not.
bool sealed_socket::open_record(std::span<const iovec> parts, std::size_t& skip) {
  std::byte* const head = in_.get() + in_at_;
  std::uint32_t bytes;
  std::memcpy(&bytes, head, sizeof bytes);
  if (bytes == 0 || bytes > seal::text_most) return false;
  in_seal_.begin(head, bytes);
  std::byte* const text = head + seal::head_bytes;
  place to(parts, skip);
  std::size_t done = 0;
  while (done != bytes) {
    const std::span<std::byte> room = to.next(bytes - done);
    if (room.empty()) break;
    in_seal_.go_on(room.data(), text + done, room.size());
    done += room.size();
  }
  in_seal_.go_on(text + done, text + done, bytes - done);
  if (!in_seal_.end(text + bytes)) return false;
  left_ = {text + done, bytes - done};
  skip += done;
  in_at_ += seal::head_bytes + bytes + seal::tag_bytes;
  return true;
}

/// Requires: nothing is left of a record's text.
void sealed_socket::make_room() {
  if (in_at_ == 0) return;
  std::memmove(in_.get(), in_.get() + in_at_, in_end_ - in_at_);
  in_end_ -= std::exchange(in_at_, 0);
}

std::size_t sealed_socket::take_what_is_left(std::span<const iovec> parts) {
  place to(parts);
  std::size_t done = 0;
  while (!left_.empty()) {
    const std::span<std::byte> room = to.next(left_.size());
    if (room.empty()) break;
    std::memcpy(room.data(), left_.data(), room.size());
    left_ = left_.subspan(room.size());
    done += room.size();
  }
  return done;
}

ssize_t sealed_socket::receive(std::span<const iovec> parts) {
  const std::size_t room = bytes_of(parts);
  std::size_t done = take_what_is_left(parts);
  while (done != room) {
    if (has_record()) {
      if (is_bad_ || !open_record(parts, done)) {
        is_bad_ = true;
        errno = EBADMSG;
        return done != 0 ? static_cast<ssize_t>(done) : -1;
      }
      continue;
    }
    make_room();
    const ssize_t n = recv(socket_, in_.get() + in_end_, buffer_bytes - in_end_, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return done != 0 ? static_cast<ssize_t>(done) : n;
    in_end_ += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace sojourn::detail
