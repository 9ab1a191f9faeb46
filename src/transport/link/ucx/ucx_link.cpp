// SPDX-License-Identifier: Apache-2.0
#include "transport/link/ucx/ucx_link.hpp"

#if __has_include(<ucp/api/ucp.h>)

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/owned_descriptors.hpp"
#include "memory/runtime_resource.hpp"
#include "transport/link/ucx/library.hpp"

namespace sojourn::detail::ucx {

namespace {

// An active message of UCX carries one frame or several. Short frames are copied into one message.
// A long frame is sent from where it lies, and the other rank may fetch it (rendezvous). UCX
// promises no order between these two kinds, nor among long messages, so all messages have numbers.

struct am_head {
  std::uint32_t from;  ///< The rank that has sent the message.
  std::uint32_t unused;
  std::uint64_t number;  ///< From 1, counting all messages that this rank has sent to that one.
};
constexpr unsigned am_id = 0;
constexpr std::size_t bundle_bytes = 8 << 10;
/// A frame with this much payload, or more, goes by itself.
constexpr std::size_t in_place_from = 4 << 10;
/// A message up to this length goes as UCX's header and needs no second part. UCX would copy a
/// longer header once more.
constexpr std::size_t header_bytes_most = 512;
/// No rank sends more messages than this before their turn, because the rings at this end have no
/// room for more.
constexpr std::size_t early_most = 2 * far_rank::ring_bytes / shm::line;
/// How often UCX is asked in a turn, as long as it has something to do.
constexpr int progress_a_turn = 64;

/// Sockets are looked at in one of so many thorough pumps: something comes over them only when two
/// ranks meet and when they part.
constexpr unsigned looks_a_look_at_sockets = 16;

/// What ranks say to each other over the socket.
struct word {
  enum kind : std::uint32_t {
    address,  ///< The address of a worker follows.
    bye,      ///< `number`: that of the last message that was sent.
    has_all,  ///< All messages have come that `bye` speaks of.
  };
  kind says;
  std::uint32_t bytes;
  std::uint64_t number;
};
constexpr std::uint32_t address_bytes_most = 64 << 10;

/// In memory of the runtime, because a signal handler may have to keep something.
using byte_vector = std::pmr::vector<std::byte>;

void append(byte_vector& to, const void* from, std::size_t n) {
  const auto* first = static_cast<const std::byte*>(from);
  to.insert(to.end(), first, first + n);
}

/// A message that has come before it could be taken.
struct early {
  byte_vector frames{runtime_resource()};  ///< The frames that came in its header.
  void* data = nullptr;   ///< Its second part, if UCX keeps it, or what UCX needs to fetch it.
  std::size_t bytes = 0;  ///< Length of the second part.
  bool is_fetched = false;
  byte_vector copy{runtime_resource()};  ///< The second part, if UCX does not keep it.
};

class ucx_link final : public socket_link {
 public:
  ucx_link(const library& ucx, ucp_context_h context, ucp_worker_h worker, int me,
           std::unique_ptr<socket_source> source);
  ~ucx_link() override;

  void connected(int rank, const connection& made) override;

  void begin(std::span<far_rank* const> ranks) override;
  void push(int rank) override;
  void pump(bool thoroughly) override;
  void enter_handler(interrupted what) override { handler_in_ = what; }
  bool has_unsent(int rank) override;
  void end() override { is_ending_ = true; }
  bool arm() override;
  parts moved() const override;
  void lose(int rank) override;

 private:
  struct peer {
    ucx_link* link = nullptr;
    int number = 0;
    far_rank* rank = nullptr;

    int socket = -1;
    byte_vector to_say;  ///< Bytes that the socket has not taken.
    byte_vector heard;   ///< Bytes of a word that has not come in whole.

    ucp_ep_h way = nullptr;
    plain_bytes out;             ///< The message that is being sent.
    void* going = nullptr;       ///< The request while UCX still needs `out`.
    bool goes_in_place = false;  ///< UCX needs the payload in the ring, too.
    std::uint64_t sent = 0;

    std::uint64_t came = 0;
    std::pmr::map<std::uint64_t, early> early_ones{runtime_resource()};
    bool is_fetching = false;

    bool said_bye = false;
    bool has_mine = false;  ///< The other rank has all messages, and knows that no more come.
    bool is_gone =
        false;  ///< The other rank has said that no more come from it, and all have come.
    std::uint64_t bye = never;
    const char* broken =
        nullptr;             ///< Why the connection is broken. The next thorough pump ends it.
    bool is_listed = false;  ///< It is in moved_.
  };
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr std::uint32_t worker_number = ~std::uint32_t{0} - 1;

  peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  static bool is_open(const peer& p) { return p.socket >= 0 && p.broken == nullptr; }
  void breaks(peer& p, const char* why);
  void note_moved(peer& p);

  void open_way(peer& p, std::span<const std::byte> address);
  bool send_one(peer& p);
  void has_left(peer& p, ucs_status_t how);
  static void on_left(void* request, ucs_status_t how, void* user);
  static void on_broken(void* user, ucp_ep_h way, ucs_status_t why);

  static ucs_status_t on_message(void* user, const void* head, std::size_t head_bytes, void* data,
                                 std::size_t data_bytes, const ucp_am_recv_param_t* how);
  ucs_status_t came(peer& p, std::uint64_t number, std::span<const std::byte> frames, void* data,
                    std::size_t data_bytes, std::uint64_t attributes);
  bool take(peer& p, std::span<const std::byte> frames, std::span<const std::byte> data);
  void take_early(peer& p);
  void fetch(peer& p, const early& from);
  void has_fetched(peer& p, ucs_status_t how);
  static void on_fetched(void* request, ucs_status_t how, std::size_t bytes, void* user);
  void let_go(early& one);

  void say(peer& p, word::kind what, std::span<const std::byte> more, std::uint64_t number);
  void flush_words(peer& p);
  void heard(std::uint32_t number, std::uint32_t events) override;
  void hear_words(peer& p);
  void understand(peer& p, const word& w, std::span<const std::byte> more);
  void part(peer& p);
  void close(peer& p);
  void end_broken();

  const library& ucx_;
  ucp_context_h context_;
  ucp_worker_h worker_;
  int me_;
  std::pmr::vector<peer> peers_{runtime_resource()};
  std::pmr::vector<peer*> moved_{
      runtime_resource()};  ///< Peers from which something has come, or to which something has
                            ///< left, so that more may leave now.
  bool some_are_broken_ = false;
  interrupted handler_in_ = interrupted::nothing;
  bool is_ending_ = false;
  unsigned looks_ = 0;  ///< How many thorough pumps there were.
};

ucx_link::ucx_link(const library& ucx, ucp_context_h context, ucp_worker_h worker, int me,
                   std::unique_ptr<socket_source> source)
    : socket_link(std::move(source)), ucx_(ucx), context_(context), worker_(worker), me_(me) {
  int descriptor = -1;
  if (ucx_.worker_get_efd(worker_, &descriptor) != UCS_OK)
    throw error("UCX has no descriptor on which to sleep");
  watch(descriptor, worker_number, EPOLLIN);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = am_id;
  handler.cb = on_message;
  handler.arg = this;
  if (ucx_.worker_set_am_recv_handler(worker_, &handler) != UCS_OK)
    throw error("UCX takes no handler of active messages");
}

ucx_link::~ucx_link() {
  for (peer& p : peers_) close(p);
  ucx_.worker_destroy(worker_);
  ucx_.cleanup(context_);
}

void ucx_link::begin(std::span<far_rank* const> ranks) {
  socket_link::begin(ranks);
  peers_ = std::pmr::vector<peer>(ranks.size(), runtime_resource());
  moved_.reserve(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    peers_[r].link = this;
    peers_[r].number = static_cast<int>(r);
    peers_[r].rank = ranks[r];
  }
}

void ucx_link::breaks(peer& p, const char* why) {
  if (p.broken != nullptr) return;
  p.broken = why;
  some_are_broken_ = true;
}

void ucx_link::note_moved(peer& p) {
  if (std::exchange(p.is_listed, true)) return;
  moved_.push_back(&p);
}

// --- What goes

void ucx_link::connected(int rank, const connection& made) {
  peer& p = at(rank);
  p.socket = made.socket;
  watch(made.socket, static_cast<std::uint32_t>(rank), EPOLLIN);
  ucp_address_t* mine = nullptr;
  std::size_t length = 0;
  if (ucx_.worker_get_address(worker_, &mine, &length) != UCS_OK)
    die("UCX does not say where it is reached");
  say(p, word::address, std::as_bytes(std::span(reinterpret_cast<const char*>(mine), length)), 0);
  ucx_.worker_release_address(worker_, mine);
}

void ucx_link::open_way(peer& p, std::span<const std::byte> address) {
  ucp_ep_params_t to{};
  to.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  to.address = reinterpret_cast<const ucp_address_t*>(address.data());
  to.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  to.err_handler.cb = on_broken;
  to.err_handler.arg = &p;
  if (const ucs_status_t how = ucx_.ep_create(worker_, &to, &p.way); how != UCS_OK) {
    p.way = nullptr;
    return breaks(p, ucx_.status_string(how));
  }
  p.out = plain_bytes(runtime_resource(), bundle_bytes);
  note_moved(p);
}

void ucx_link::on_broken(void* user, ucp_ep_h, ucs_status_t why) {
  peer& p = *static_cast<peer*>(user);
  p.link->breaks(p, p.link->ucx_.status_string(why));
}

void ucx_link::push(int rank) {
  peer& p = at(rank);
  if (handler_in_ == interrupted::library) return note_moved(p);
  if (p.is_gone) return p.rank->throw_away();
  if (p.broken != nullptr) return;
  if (p.way == nullptr) {
    if (p.socket < 0 && p.rank->has_outgoing()) want(rank);
    return;
  }
  while (p.going == nullptr && p.broken == nullptr && send_one(p)) {
  }
}

/// Sends one message, of as many frames as it has room for. Returns false when there is nothing to
/// send.
bool ucx_link::send_one(peer& p) {
  std::size_t filled = sizeof(am_head);
  std::span<const std::byte> in_place;
  for (far_rank::outgoing f; p.rank->next(f);) {
    const bool alone = f.payload.size() >= in_place_from;
    const std::size_t copied = sizeof f.head + (alone ? 0 : f.payload.size());
    if (filled + copied > bundle_bytes || (alone && filled != sizeof(am_head))) break;
    std::memcpy(p.out.get() + filled, &f.head, sizeof f.head);
    if (!alone && !f.payload.empty())
      std::memcpy(p.out.get() + filled + sizeof f.head, f.payload.data(), f.payload.size());
    filled += copied;
    if (alone) {
      in_place = f.payload;
      break;
    }
    p.rank->sent();
  }
  if (filled == sizeof(am_head)) return false;
  const am_head head{static_cast<std::uint32_t>(me_), 0, ++p.sent};
  std::memcpy(p.out.get(), &head, sizeof head);
  std::size_t in_header = filled;
  if (in_place.empty() && filled > header_bytes_most) {
    in_header = sizeof head;
    in_place = {p.out.get() + in_header, filled - in_header};
  }
  p.goes_in_place = in_header == sizeof head + sizeof(far_frame) && !in_place.empty();
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = p.goes_in_place ? 0 : UCP_AM_SEND_FLAG_EAGER;
  how.cb.send = on_left;
  how.user_data = &p;
  void* const request = ucx_.am_send_nbx(p.way, am_id, p.out.get(), in_header, in_place.data(),
                                         in_place.size(), &how);
  if (UCS_PTR_IS_PTR(request)) {
    p.going = request;
  } else {
    has_left(p, UCS_PTR_STATUS(request));
  }
  return true;
}

void ucx_link::has_left(peer& p, ucs_status_t how) {
  p.going = nullptr;
  if (how != UCS_OK) breaks(p, ucx_.status_string(how));
  if (p.goes_in_place && p.broken == nullptr && p.way != nullptr) p.rank->sent();
  p.goes_in_place = false;
}

void ucx_link::on_left(void* request, ucs_status_t how, void* user) {
  peer& p = *static_cast<peer*>(user);
  p.link->ucx_.request_free(request);
  p.link->has_left(p, how);
  p.link->note_moved(p);
}

// --- What comes

ucs_status_t ucx_link::on_message(void* user, const void* head, std::size_t head_bytes, void* data,
                                  std::size_t data_bytes, const ucp_am_recv_param_t* how) {
  auto& self = *static_cast<ucx_link*>(user);
  am_head said;
  if (head_bytes < sizeof said) return UCS_OK;  // not from a rank of this job
  std::memcpy(&said, head, sizeof said);
  if (said.from >= self.peers_.size()) return UCS_OK;
  peer& p = self.peers_[said.from];
  if (p.rank == nullptr || p.rank->is_lost() || p.broken != nullptr) return UCS_OK;
  const std::span frames(static_cast<const std::byte*>(head) + sizeof said,
                         head_bytes - sizeof said);
  self.note_moved(p);
  return self.came(p, said.number, frames, data, data_bytes, how->recv_attr);
}

/// Takes a message, or keeps it until its turn.
ucs_status_t ucx_link::came(peer& p, std::uint64_t number, std::span<const std::byte> frames,
                            void* data, std::size_t data_bytes, std::uint64_t attributes) {
  const bool is_fetched = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (number == p.came + 1 && !p.is_fetching && !is_fetched && p.way != nullptr) {
    if (take(p, frames, {static_cast<const std::byte*>(data), data_bytes})) ++p.came;
    return UCS_OK;
  }
  if (number <= p.came || p.early_ones.size() >= early_most || p.early_ones.contains(number)) {
    breaks(p, "sends a message out of its order");
    return UCS_OK;
  }
  early& one = p.early_ones[number];
  append(one.frames, frames.data(), frames.size());
  one.bytes = data_bytes;
  one.is_fetched = is_fetched;
  if (is_fetched || (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0) {
    one.data = data;
    return UCS_INPROGRESS;
  }
  append(one.copy, data, data_bytes);
  return UCS_OK;
}

/// Takes the frames of a message whose turn it is. Each frame lies wholly in one of the message's
/// two parts, or its head ends the first part and its payload is the second. Returns false when the
/// other rank must not send such a message.
bool ucx_link::take(peer& p, std::span<const std::byte> frames, std::span<const std::byte> data) {
  for (;;) {
    if (frames.empty()) frames = std::exchange(data, {});
    if (frames.empty()) return true;
    far_frame head;
    if (frames.size() < sizeof head) break;
    std::memcpy(&head, frames.data(), sizeof head);
    frames = frames.subspan(sizeof head);
    if (frames.empty() && head.bytes != 0) frames = std::exchange(data, {});
    if (frames.size() < head.bytes) break;
    const far_rank::incoming to = p.rank->begin(head);
    if (to.why != nullptr) {
      breaks(p, to.why);
      return false;
    }
    if (to.is_message) {
      if (head.bytes != 0) std::memcpy(to.room, frames.data(), head.bytes);
      p.rank->arrived();
    }
    frames = frames.subspan(head.bytes);
  }
  breaks(p, "sends a frame that is cut off");
  return false;
}

void ucx_link::take_early(peer& p) {
  // Begins no fetch before the way is open, because only closing the way ends a fetch (close()).
  while (p.way != nullptr && !p.is_fetching && p.broken == nullptr && !p.early_ones.empty() &&
         p.early_ones.begin()->first == p.came + 1) {
    early& one = p.early_ones.begin()->second;
    if (one.is_fetched) {
      fetch(p, one);
      one.data = nullptr;
    } else {
      const std::span<const std::byte> data =
          one.data == nullptr ? std::span<const std::byte>(one.copy)
                              : std::span(static_cast<const std::byte*>(one.data), one.bytes);
      if (take(p, one.frames, data)) ++p.came;
      let_go(one);
    }
    p.early_ones.erase(p.early_ones.begin());
  }
}

/// Begins to fetch the payload of the one frame of a message whose turn it is.
void ucx_link::fetch(peer& p, const early& from) {
  far_frame head;
  if (from.frames.size() != sizeof head) {
    ucx_.am_data_release(worker_, from.data);
    return breaks(p, "sends a frame that is cut off");
  }
  std::memcpy(&head, from.frames.data(), sizeof head);
  const far_rank::incoming to = head.bytes == from.bytes
                                    ? p.rank->begin(head)
                                    : far_rank::incoming{.why = "sends a frame that is cut off"};
  if (to.why != nullptr || !to.is_message) {
    ucx_.am_data_release(worker_, from.data);
    return breaks(p, to.why != nullptr ? to.why : "sends a payload without a message");
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.recv_am = on_fetched;
  how.user_data = &p;
  p.is_fetching = true;
  void* const request = ucx_.am_recv_data_nbx(worker_, from.data, to.room, head.bytes, &how);
  if (!UCS_PTR_IS_PTR(request)) has_fetched(p, UCS_PTR_STATUS(request));
}

void ucx_link::has_fetched(peer& p, ucs_status_t how) {
  p.is_fetching = false;
  if (how != UCS_OK) return breaks(p, ucx_.status_string(how));
  p.rank->arrived();
  ++p.came;
}

void ucx_link::on_fetched(void* request, ucs_status_t how, std::size_t, void* user) {
  peer& p = *static_cast<peer*>(user);
  p.link->ucx_.request_free(request);
  p.link->has_fetched(p, how);
  p.link->note_moved(p);
}

void ucx_link::let_go(early& one) {
  if (one.data != nullptr) ucx_.am_data_release(worker_, std::exchange(one.data, nullptr));
}

void ucx_link::pump(bool thoroughly) {
  if (handler_in_ == interrupted::library) return;
  // Once a message is here, asking again would only hold it up.
  for (int i = 0; i < progress_a_turn && ucx_.worker_progress(worker_) != 0 && moved_.empty();
       ++i) {
  }
  // Peers may come back on the list while it is gone through.
  for (std::size_t i = 0; i < moved_.size(); ++i) {
    peer& p = *moved_[i];
    p.is_listed = false;
    if (p.rank->is_lost() || p.broken != nullptr) continue;
    take_early(p);
    push(p.number);
    part(p);
  }
  moved_.clear();
  if (!thoroughly || ++looks_ % looks_a_look_at_sockets != 0) return;
  serve_sockets();
  if (is_ending_) std::for_each(peers_.begin(), peers_.end(), [this](peer& p) { part(p); });
  if (std::exchange(some_are_broken_, false)) end_broken();
  tell_broken();
}

link::parts ucx_link::moved() const {
  parts all;
  for (const peer& p : peers_) {
    all.sent += p.sent;
    all.came += p.came;
  }
  return all;
}

bool ucx_link::arm() {
  if (!moved_.empty() || some_are_broken_) return false;
  return ucx_.worker_arm(worker_) == UCS_OK;
}

// --- Words over the socket

void ucx_link::say(peer& p, word::kind what, std::span<const std::byte> more,
                   std::uint64_t number) {
  const word w{what, static_cast<std::uint32_t>(more.size()), number};
  append(p.to_say, &w, sizeof w);
  append(p.to_say, more.data(), more.size());
  flush_words(p);
}

void ucx_link::flush_words(peer& p) {
  const bool waited = !p.to_say.empty();
  while (!p.to_say.empty()) {
    const ssize_t n =
        ::send(p.socket, p.to_say.data(), p.to_say.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return breaks(p, std::strerror(errno));
    if (n < 0) break;
    p.to_say.erase(p.to_say.begin(), p.to_say.begin() + n);
  }
  if (waited)
    watch(p.socket, static_cast<std::uint32_t>(p.number),
          EPOLLIN | (p.to_say.empty() ? 0u : EPOLLOUT), true);
}

void ucx_link::heard(std::uint32_t number, std::uint32_t events) {
  if (number == worker_number) return;  // worker_progress() has been asked already
  peer& p = at(static_cast<int>(number));
  if (!is_open(p)) return;
  if ((events & EPOLLOUT) != 0) flush_words(p);
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) hear_words(p);
}

void ucx_link::hear_words(peer& p) {
  std::array<std::byte, 4096> part;
  const char* ends = nullptr;  // reported after the words that came before the end
  for (;;) {
    const ssize_t n = recv(p.socket, part.data(), part.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      ends = n == 0 ? "the connection was closed" : std::strerror(errno);
      break;
    }
    append(p.heard, part.data(), static_cast<std::size_t>(n));
  }
  word w;
  while (p.broken == nullptr && p.heard.size() >= sizeof w) {
    std::memcpy(&w, p.heard.data(), sizeof w);
    if (w.bytes > address_bytes_most) return breaks(p, "says what is no word of this job's");
    if (p.heard.size() < sizeof w + w.bytes) break;
    understand(p, w, std::span(p.heard).subspan(sizeof w, w.bytes));
    p.heard.erase(p.heard.begin(),
                  p.heard.begin() + static_cast<std::ptrdiff_t>(sizeof w + w.bytes));
  }
  if (ends != nullptr) breaks(p, ends);
}

void ucx_link::understand(peer& p, const word& w, std::span<const std::byte> more) {
  switch (w.says) {
    case word::address:
      if (p.way != nullptr || more.empty()) break;
      return open_way(p, more);
    case word::bye:
      if (p.bye != never || !more.empty()) break;
      p.bye = w.number;
      return part(p);
    case word::has_all:
      if (!p.said_bye || !more.empty()) break;
      p.has_mine = true;
      return;
  }
  breaks(p, "says what is no word of this job's");
}

/// Says what two ranks say to each other before they part, if it is time.
void ucx_link::part(peer& p) {
  if (!is_open(p) || handler_in_ != interrupted::nothing) return;
  if (p.bye != never && p.came >= p.bye && !p.is_gone && p.going == nullptr) {
    say(p, word::has_all, {}, 0);
    p.is_gone = true;
    p.rank->throw_away();
  }
  if (!is_ending_ || p.said_bye || p.going != nullptr || (!p.is_gone && p.rank->has_outgoing()))
    return;
  p.said_bye = true;
  say(p, word::bye, {}, p.sent);
}

bool ucx_link::has_unsent(int rank) {
  const peer& p = at(rank);
  if (p.rank->is_lost()) return false;
  if (!p.to_say.empty() && is_open(p)) return true;
  if (p.is_gone) return false;
  return p.rank->has_outgoing() || p.going != nullptr || (is_ending_ && is_open(p) && !p.has_mine);
}

void ucx_link::close(peer& p) {
  if (p.socket < 0) return;
  if (p.way != nullptr) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const request = ucx_.ep_close_nbx(std::exchange(p.way, nullptr), &how);
    constexpr std::uint64_t most_ns = 2'000'000'000;
    const std::uint64_t since = now_ns();
    // UCX must not write to room that was given back, nor read a buffer that is used again. So this
    // waits until all is over. Each fetch has begun after the way was opened, so it ends when the
    // way is closed.
    while ((UCS_PTR_IS_PTR(request) && ucx_.request_check_status(request) == UCS_INPROGRESS) ||
           p.is_fetching || p.going != nullptr) {
      ucx_.worker_progress(worker_);
      if (now_ns() - since > most_ns) die("UCX does not end its connection to rank %d", p.number);
    }
    if (UCS_PTR_IS_PTR(request)) ucx_.request_free(request);
  }
  for (auto& [number, one] : p.early_ones) let_go(one);
  p.early_ones.clear();
  unwatch(p.socket);
  close_owned(std::exchange(p.socket, -1));
  p.rank->abandon();
}

void ucx_link::end_broken() {
  for (peer& p : peers_) {
    if (p.broken == nullptr || p.socket < 0) continue;
    // A rank that has said that it ends is not reported.
    if (!p.is_gone) note_broken(p.number, p.broken);
    close(p);
  }
}

void ucx_link::lose(int rank) { close(at(rank)); }

/// Blocks all signals while UCX starts its thread, which inherits this: the program's signals are
/// for the rank's own threads.
class no_signals {
 public:
  no_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~no_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  no_signals(const no_signals&) = delete;

 private:
  sigset_t before_;
};

/// Makes the context of UCX for this process.
ucs_status_t make_context(const library& ucx, ucp_context_h& context) {
  ucp_params_t wants{};
  wants.field_mask = UCP_PARAM_FIELD_FEATURES;
  wants.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  return ucx.init_version(UCP_API_MAJOR, UCP_API_MINOR, &wants, nullptr, &context);
}

}  // namespace

std::unique_ptr<socket_link> make_link(int me, std::unique_ptr<socket_source> source,
                                       std::string& why_not) {
  const library* ucx = load(why_not);
  if (ucx == nullptr) return nullptr;
  const no_signals for_its_thread;
  ucp_context_h context = nullptr;
  if (const ucs_status_t how = make_context(*ucx, context); how != UCS_OK) {
    why_not = std::string("ucp_init: ") + ucx->status_string(how);
    return nullptr;
  }
  ucp_worker_params_t wants{};
  wants.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  wants.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  if (const ucs_status_t how = ucx->worker_create(context, &wants, &worker); how != UCS_OK) {
    why_not = std::string("ucp_worker_create: ") + ucx->status_string(how);
    ucx->cleanup(context);
    return nullptr;
  }
  return std::make_unique<ucx_link>(*ucx, context, worker, me, std::move(source));
}

std::string version(std::string& why_not) {
  const library* ucx = load(why_not);
  return ucx == nullptr ? "" : ucx->get_version_string();
}

}  // namespace sojourn::detail::ucx

#else

namespace sojourn::detail::ucx {

namespace {
constexpr const char* built_without =
    "this Sojourn was built without UCX, whose headers (Debian: libucx-dev) were not there";
}

std::unique_ptr<socket_link> make_link(int, std::unique_ptr<socket_source>, std::string& why_not) {
  why_not = built_without;
  return nullptr;
}

std::string version(std::string& why_not) {
  why_not = built_without;
  return "";
}

}  // namespace sojourn::detail::ucx

#endif
