// SPDX-License-Identifier: Apache-2.0
//
// UCX's active messages (UCP) between two processes that share memory.
//
//   ping     round trip of `bytes` bytes each way, copied into the receiver's buffer
//   rate     one message of `bytes` bytes, one way, of many; a few are on their way at a time
//
// Both spin in ucp_worker_progress. Between two commands the first sleeps in read() on the driver's
// FIFO and the second on a pipe. UCX_TLS says otherwise which transports there are; without it
// these are the ones that were the quickest here.

#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstring>

#include "two_processes.hpp"

namespace {

constexpr const char* transports = "posix,cma,self";
constexpr unsigned message_id = 1;
constexpr std::size_t bytes_max = std::size_t{1} << 20;
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
  explicit side(bench::half_of_two& half) : half_(half), out_(bytes_max, 'x'), in_(bytes_max) {
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
    if (what.operation == "ping")
      return bench::time_batches(what.plan, [&](std::uint64_t n) { ping_pong(n, bytes); });
    if (what.operation == "rate")
      return bench::time_batches(what.plan, [&](std::uint64_t n) { stream(n, bytes); });
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
      ++me.received_;
      return UCS_OK;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.recv_am = fetched;
    parameters.user_data = self;
    const ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(me.worker_, data, me.in_.data(), bytes, &parameters);
    if (request == nullptr)
      ++me.received_;
    else if (UCS_PTR_IS_ERR(request))
      check(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx");
    return UCS_INPROGRESS;
  }
  static void fetched(void* request, ucs_status_t status, std::size_t, void* self) {
    check(status, "ucp_am_recv_data_nbx");
    ++static_cast<side*>(self)->received_;
    ucp_request_free(request);
  }
  static void sent(void* request, ucs_status_t status, void* self) {
    check(status, "ucp_am_send_nbx");
    --static_cast<side*>(self)->sending_;
    ucp_request_free(request);
  }

  void send(std::size_t bytes) {
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = sent;
    parameters.user_data = this;
    bench::touch(out_.data());
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint_, message_id, nullptr, 0, out_.data(), bytes, &parameters);
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "ucp_am_send_nbx");
    ++sending_;
  }
  void ping_pong(std::uint64_t round_trips, std::size_t bytes) {
    for (std::uint64_t i = 0; i < round_trips; ++i) {
      if (half_.is_second()) {
        receive_next();
        send(bytes);
      } else {
        send(bytes);
        receive_next();
      }
    }
  }
  /// `expected_` counts what was waited for: a message may arrive while one is sent.
  void receive_next() {
    ++expected_;
    while (received_ < expected_) ucp_worker_progress(worker_);
    while (sending_ != 0) ucp_worker_progress(worker_);
  }
  void stream(std::uint64_t messages, std::size_t bytes) {
    for (std::uint64_t done = 0; done < messages;) {
      const std::uint64_t now = std::min(window, messages - done);
      if (half_.is_second()) {
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
    if (!half_.is_second()) receive_next();
    while (sending_ != 0) ucp_worker_progress(worker_);
  }

  bench::half_of_two& half_;
  std::vector<char> out_;
  std::vector<char> in_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::uint64_t received_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t sending_ = 0;
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
