// SPDX-License-Identifier: Apache-2.0
//
// Cap'n Proto's two-party RPC over a socket of the Unix domain, between two processes.
//
//   ping     round trip of a call with `bytes` bytes each way, copied in and out on both sides
//
// Both wait in the event loop, as EzRpc has it. Between two commands the first sleeps in read() on
// the driver's FIFO, and the second in its event loop.

#include <capnp/ez-rpc.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "peer_capnp.capnp.h"
#include "two_processes.hpp"

namespace {

constexpr std::size_t bytes_max = std::size_t{1} << 20;

// Cap'n Proto counts references to what is final here; it deletes nothing through a base.
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"

/// Answers with as many bytes as came.
class echo_server final : public bench::schema::Peer::Server {
 public:
  echo_server() : out_(bytes_max, 'y'), in_(bytes_max) {}

 protected:
  kj::Promise<void> echo(EchoContext context) override {
    const auto arrived = context.getParams().getBytes();
    const std::size_t bytes = std::min(arrived.size(), in_.size());
    std::memcpy(in_.data(), arrived.begin(), bytes);
    bench::touch(in_.data());
    std::memcpy(context.getResults().initBytes(static_cast<unsigned>(bytes)).begin(), out_.data(),
                bytes);
    return kj::READY_NOW;
  }

 private:
  std::vector<char> out_;
  std::vector<char> in_;
};

/// The second process: until the first is gone.
[[noreturn]] void serve(bench::half_of_two& half, const std::string& address) {
  capnp::EzRpcServer server(kj::heap<echo_server>(), address.c_str());
  auto& waits = server.getWaitScope();
  server.getPort().wait(waits);
  const char ready = 1;
  half.send(&ready, 1);
  kj::NEVER_DONE.wait(waits);
}

class client {
 public:
  explicit client(const std::string& address)
      : rpc_(address.c_str()),
        peer_(rpc_.getMain<bench::schema::Peer>()),
        out_(bytes_max, 'x'),
        in_(bytes_max) {}

  std::optional<std::vector<double>> measure(const bench::command& what) {
    if (what.operation != "ping" || what.plan.bytes > bytes_max) return std::nullopt;
    return bench::time_batches(what.plan, [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) call(what.plan.bytes);
    });
  }

 private:
  void call(std::size_t bytes) {
    auto request = peer_.echoRequest(capnp::MessageSize{bytes / sizeof(capnp::word) + 16, 0});
    std::memcpy(request.initBytes(static_cast<unsigned>(bytes)).begin(), out_.data(), bytes);
    const auto answer = request.send().wait(rpc_.getWaitScope());
    const auto arrived = answer.getBytes();
    std::memcpy(in_.data(), arrived.begin(), std::min(arrived.size(), in_.size()));
    bench::touch(in_.data());
  }

  capnp::EzRpcClient rpc_;
  bench::schema::Peer::Client peer_;
  std::vector<char> out_;
  std::vector<char> in_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "ping");
  const std::string address = "unix-abstract:sojourn.peer_capnp." + std::to_string(getpid());
  bench::half_of_two half("peer_capnp", options.cpus);
  if (half.is_second()) serve(half, address);
  char ready = 0;
  if (!half.receive(&ready, 1)) {
    std::fprintf(stderr, "peer_capnp: its server does not start\n");
    return 1;
  }
  client self(address);
  const int status = bench::obey("peer_capnp", options,
                                 [&](const bench::command& what) { return self.measure(what); });
  std::fflush(nullptr);
  std::_Exit(status);  // The server is killed with this process; it has nothing to finish.
}
