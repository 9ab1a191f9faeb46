// SPDX-License-Identifier: Apache-2.0
//
// UCX's active messages (UCP) between two processes that share memory.
//
//   ping     round trip of `bytes` bytes each way, copied into the receiver's buffer
//   there    round trip of `bytes` bytes and an empty answer
//   rate     one message of `bytes` bytes, one way, of many; a few are on their way at a time
//   stream.W the same with a credit from the receiver each W messages
//
// Both spin in ucp_worker_progress. Between two commands the first sleeps in read() on the driver's
// FIFO and the second on a pipe. All payloads are checked. UCX_TLS says otherwise which transports
// there are; without it these are the ones that were the quickest here.

#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/payload.hpp"
#include "two_processes.hpp"

namespace {

constexpr const char* transports = "posix,cma,self";
constexpr unsigned message_id = 1;
constexpr std::size_t bytes_max = std::size_t{64} << 20;
// Messages without a credit from the receiver: bounds what UCX queues at both ends.
constexpr std::uint64_t window = 1024;

void check(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  std::fprintf(stderr, "peer_ucx_am: %s: %s\n", what, ucs_status_string(status));
  std::_Exit(1);
}

/// One process's end of the conversation.
class side {
 public:
  explicit side(bench::half_of_two& half)
      : half_(half), me_(half.is_second() ? 1 : 0), out_(bytes_max), in_(bytes_max) {
    setenv("UCX_TLS", transports, 0);
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_AM;
    ucp_context_h context = nullptr;
    check(ucp_init(&parameters, config, &context), "ucp_init");
    ucp_config_release(config);
    ucp_worker_params_t of_worker{};
    of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    of_worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context, &of_worker, &worker_), "ucp_worker_create");
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.cb = arrived;
    handler.arg = this;
    check(ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
    connect();
  }

  /// Both sides call it with the same command.
  std::optional<std::vector<double>> measure(const bench::command& what) {
    if (what.plan.bytes > bytes_max) return std::nullopt;
    const std::size_t bytes = what.plan.bytes;
    std::fill(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(bytes), char{});
    const std::size_t copies = bytes <= numbered_max ? slots : 1;
    for (std::size_t i = 0; i < copies; ++i) {
      bench::fill_payload(out_.data() + i * bytes, bytes, me_);
    }
    expects_ = number_ = 0;
    if (what.operation == "ping") return ping_pong(what.plan, bytes, bytes);
    if (what.operation == "there") return ping_pong(what.plan, bytes, 0);
    if (what.operation == "rate") return stream(what.plan, bytes, window);
    if (what.operation.starts_with("stream.")) {
      const int wide = std::atoi(what.operation.c_str() + 7);
      if (wide > 0) return stream(what.plan, bytes, static_cast<std::uint64_t>(wide));
    }
    return std::nullopt;
  }

 private:
  void connect() {
    ucp_address_t* mine = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker_, &mine, &length), "ucp_worker_get_address");
    half_.send(&length, sizeof length);
    half_.send(mine, length);
    ucp_worker_release_address(worker_, mine);
    std::size_t their_length = 0;
    if (!half_.receive(&their_length, sizeof their_length)) std::_Exit(1);
    std::vector<char> theirs(their_length);
    if (!half_.receive(theirs.data(), theirs.size())) std::_Exit(1);
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<ucp_address_t*>(theirs.data());
    check(ucp_ep_create(worker_, &parameters, &endpoint_), "ucp_ep_create");
  }

  static ucs_status_t arrived(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* how) {
    auto& me = *static_cast<side*>(self);
    if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      std::memcpy(me.in_.data(), data, bytes);
      bench::touch(me.in_.data());
      me.count(bytes);
      return UCS_OK;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.recv_am = fetched;
    me.fetching_bytes_ = bytes;
    parameters.user_data = self;
    const ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(me.worker_, data, me.in_.data(), bytes, &parameters);
    if (request == nullptr)
      me.count(bytes);
    else if (UCS_PTR_IS_ERR(request))
      check(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx");
    return UCS_INPROGRESS;
  }
  static void fetched(void* request, ucs_status_t status, std::size_t, void* self) {
    check(status, "ucp_am_recv_data_nbx");
    auto& me = *static_cast<side*>(self);
    me.count(me.fetching_bytes_);
    ucp_request_free(request);
  }
  static void sent(void* request, ucs_status_t status, void* self) {
    check(status, "ucp_am_send_nbx");
    --static_cast<side*>(self)->sending_;
    ucp_request_free(request);
  }

  /// A message is in the buffer.
  void count(std::size_t bytes) {
    ++received_;
    if (bytes == 0) return;
    const bool in_order = bytes <= numbered_max;
    if (in_order && !bench::has_number(in_.data(), bytes, expects_)) {
      std::fprintf(stderr, "peer_ucx_am: another message came than was sent\n");
      std::_Exit(1);
    }
    ++expects_;
  }
  void check_payload(std::size_t bytes) {
    if (bench::is_payload(in_.data(), bytes, 1 - me_)) return;
    std::fprintf(stderr, "peer_ucx_am: a message arrived changed\n");
    std::_Exit(1);
  }

  void send(std::size_t bytes) {
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = sent;
    parameters.user_data = this;
    char* const from = out_.data() + (bytes <= numbered_max ? number_ % slots * bytes : 0);
    if (bytes != 0) bench::number_payload(from, bytes, number_++);
    bench::touch(from);
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint_, message_id, nullptr, 0, from, bytes, &parameters);
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "ucp_am_send_nbx");
    ++sending_;
  }
  std::vector<double> ping_pong(const bench::batch_plan& plan, std::size_t there,
                                std::size_t back) {
    auto found = bench::time_batches(plan, [&](std::uint64_t round_trips) {
      for (std::uint64_t i = 0; i < round_trips; ++i) {
        if (me_ == 0) send(there);
        receive_next();
        if (me_ == 1) send(back);
      }
    });
    // The last answer of the second is on its way until it is sent.
    while (sending_ != 0) ucp_worker_progress(worker_);
    check_payload(me_ == 0 ? back : there);
    return found;
  }
  /// `expected_` counts what was waited for: a message may arrive while one is sent.
  void receive_next() {
    ++expected_;
    while (received_ < expected_) ucp_worker_progress(worker_);
    while (sending_ != 0) ucp_worker_progress(worker_);
  }
  std::vector<double> stream(const bench::batch_plan& plan, std::size_t bytes,
                             std::uint64_t credit) {
    auto found = bench::time_batches(
        plan, [&](std::uint64_t messages) { stream_batch(messages, bytes, credit); });
    if (me_ == 1) check_payload(bytes);
    return found;
  }
  void stream_batch(std::uint64_t messages, std::size_t bytes, std::uint64_t credit) {
    for (std::uint64_t done = 0; done < messages;) {
      const std::uint64_t now = std::min(credit, messages - done);
      if (me_ == 1) {
        for (std::uint64_t i = 0; i < now; ++i) receive_next();
        send(0);
      } else {
        // A credit is waited for one window late, so that the way is never empty.
        for (std::uint64_t i = 0; i < now; ++i) {
          send(bytes);
          while (sending_ > 64) ucp_worker_progress(worker_);
        }
        if (done != 0) receive_next();
      }
      done += now;
    }
    if (me_ == 0) receive_next();
    while (sending_ != 0) ucp_worker_progress(worker_);
  }

  // A buffer belongs to UCX until it is sent. Short messages have so many in turn, more than may
  // wait; long ones share one, so that only the last one's number is known, and several are fetched
  // at a time.
  static constexpr std::size_t numbered_max = 1024;
  static constexpr std::uint64_t slots = 128;

  bench::half_of_two& half_;
  const int me_;
  std::vector<char> out_;
  std::vector<char> in_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::uint64_t received_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t sending_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t expects_ = 0;
  std::size_t fetching_bytes_ = 0;
};

struct wire_command {
  char operation[16];
  bench::batch_plan plan;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "ping");
  bench::half_of_two half("peer_ucx_am", options.cpus);
  side self(half);
  if (half.is_second()) {
    wire_command next;
    while (half.receive(&next, sizeof next)) self.measure({next.operation, next.plan});
    std::_Exit(0);
  }
  return bench::obey("peer_ucx_am", options, [&](const bench::command& what) {
    wire_command message{};
    std::strncpy(message.operation, what.operation.c_str(), sizeof message.operation - 1);
    message.plan = what.plan;
    half.send(&message, sizeof message);
    return self.measure(what);
  });
}
