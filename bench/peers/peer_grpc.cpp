// SPDX-License-Identifier: Apache-2.0
//
// gRPC's unary call over a socket of the Unix domain, between two processes.
//
//   sync     a blocking call, and a synchronous service with threads of gRPC's own
//   async    completion queues on both sides, with one thread each; the client's waits in Next, and
//            the server's looks at its queue for a while before it does
//   poll     as async, but the client's looks again and again, too: the quickest
//
// The message is a buffer of bytes each way, copied in and out on both sides: no protobuf message
// is encoded, so that gRPC's part alone is measured, and no code has to be generated. The channel,
// the stub and the server are what generated code has; `sync` uses the function that generated
// stubs are made of. Between two commands nothing is called, and the server's threads sleep.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>

#include <cstring>
#include <memory>
#include <utility>

#include "two_processes.hpp"

namespace {

constexpr const char* sync_method = "/peer.Sync/Echo";
constexpr const char* async_method = "/peer.Async/Echo";
constexpr std::size_t bytes_max = std::size_t{1} << 20;

grpc::ByteBuffer buffer_of(const std::vector<char>& bytes, std::size_t count) {
  const grpc::Slice slice(bytes.data(), count);  // copies
  return {&slice, 1};
}

/// Into `to`; the number of bytes.
std::size_t copy_out(const grpc::ByteBuffer& from, std::vector<char>& to) {
  std::vector<grpc::Slice> slices;
  if (!from.Dump(&slices).ok()) return 0;
  std::size_t copied = 0;
  for (const grpc::Slice& s : slices) {
    std::memcpy(to.data() + copied, s.begin(), s.size());
    copied += s.size();
  }
  bench::touch(to.data());
  return copied;
}

/// Answers with as many bytes as came.
class echo_service : public grpc::Service {
 public:
  echo_service() : out_(bytes_max, 'y'), in_(bytes_max) {
    using handler =
        grpc::internal::RpcMethodHandler<echo_service, grpc::ByteBuffer, grpc::ByteBuffer>;
    AddMethod(new grpc::internal::RpcServiceMethod(
        sync_method, grpc::internal::RpcMethod::NORMAL_RPC,
        new handler([](echo_service* self, grpc::ServerContext*, const grpc::ByteBuffer* request,
                       grpc::ByteBuffer* answer) { return self->echo(*request, *answer); },
                    this)));
  }

  grpc::Status echo(const grpc::ByteBuffer& request, grpc::ByteBuffer& answer) {
    answer = buffer_of(out_, copy_out(request, in_));
    return grpc::Status::OK;
  }

 private:
  std::vector<char> out_;
  std::vector<char> in_;
};

/// One call that the asynchronous server takes; it takes the next when it is done.
class taken_call {
 public:
  taken_call(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
             echo_service& echo)
      : service_(service), queue_(queue), echo_(echo) {
    take();
  }

  /// One step further, each time a tag of its comes out of the queue.
  void go_on(bool good) {
    if (step_ == step::called && good) {
      step_ = step::read;
      return call_->stream.Read(&call_->message, this);
    }
    if (step_ == step::read && good) {
      grpc::ByteBuffer answer;
      echo_.echo(call_->message, answer);
      step_ = step::answered;
      return call_->stream.WriteAndFinish(answer, grpc::WriteOptions(), grpc::Status::OK, this);
    }
    take();
  }

 private:
  enum class step { called, read, answered };
  struct state {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer message;
  };

  void take() {
    step_ = step::called;
    call_ = std::make_unique<state>();
    service_.RequestCall(&call_->context, &call_->stream, &queue_, &queue_, this);
  }

  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue& queue_;
  echo_service& echo_;
  std::unique_ptr<state> call_;
  step step_ = step::called;
};

/// The next of a queue: waits in gRPC, or looks again and again for `spin_ns` first.
bool next_of(grpc::CompletionQueue& queue, void** tag, bool* good, std::uint64_t spin_ns) {
  const std::uint64_t end = spin_ns == 0 ? 0 : bench::clock_ns() + spin_ns;
  while (spin_ns != 0 && bench::clock_ns() < end) {
    const auto found = queue.AsyncNext(tag, good, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (found == grpc::CompletionQueue::GOT_EVENT) return true;
    if (found == grpc::CompletionQueue::SHUTDOWN) return false;
  }
  return queue.Next(tag, good);
}

// Several times what a call takes; the server sleeps soon after the last one.
constexpr std::uint64_t spin_ns = 200'000;

/// The second process: until the first is gone.
[[noreturn]] void serve(bench::half_of_two& half, const std::string& address) {
  echo_service echo;
  grpc::AsyncGenericService generic;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&echo);
  builder.RegisterAsyncGenericService(&generic);
  builder.SetMaxReceiveMessageSize(-1);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  const char ready = server != nullptr ? 1 : 0;
  half.send(&ready, 1);
  if (server == nullptr) std::_Exit(1);
  taken_call call(generic, *queue, echo);
  void* tag = nullptr;
  bool good = false;
  while (next_of(*queue, &tag, &good, spin_ns)) static_cast<taken_call*>(tag)->go_on(good);
  std::_Exit(0);
}

class client {
 public:
  explicit client(const std::string& address)
      : channel_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), limits())),
        stub_(channel_),
        out_(bytes_max, 'x'),
        in_(bytes_max) {}

  std::optional<std::vector<double>> measure(const bench::command& what) {
    const std::size_t bytes = what.plan.bytes;
    if (bytes > bytes_max) return std::nullopt;
    const auto repeat = [&](auto call) {
      return bench::time_batches(what.plan, [&](std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) call();
      });
    };
    if (what.operation == "sync") return repeat([&] { call_and_block(bytes); });
    if (what.operation == "async") return repeat([&] { call_by_queue(bytes, 0); });
    if (what.operation == "poll") return repeat([&] { call_by_queue(bytes, spin_ns); });
    return std::nullopt;
  }

 private:
  static grpc::ChannelArguments limits() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return arguments;
  }

  void take(const grpc::Status& status, const grpc::ByteBuffer& answer, std::size_t bytes) {
    if (status.ok() && copy_out(answer, in_) == bytes) return;
    std::fprintf(stderr, "peer_grpc: a call failed: %s\n", status.error_message().c_str());
    std::_Exit(1);
  }

  void call_and_block(std::size_t bytes) {
    grpc::ClientContext context;
    const grpc::ByteBuffer request = buffer_of(out_, bytes);
    grpc::ByteBuffer answer;
    take(grpc::internal::BlockingUnaryCall(channel_.get(), blocking_, &context, request, &answer),
         answer, bytes);
  }

  void call_by_queue(std::size_t bytes, std::uint64_t spin) {
    grpc::ClientContext context;
    const grpc::ByteBuffer request = buffer_of(out_, bytes);
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto call = stub_.PrepareUnaryCall(&context, async_method, request, &queue_);
    call->StartCall();
    call->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool good = false;
    next_of(queue_, &tag, &good, spin);
    take(status, answer, bytes);
  }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::internal::RpcMethod blocking_{sync_method, nullptr, grpc::internal::RpcMethod::NORMAL_RPC};
  grpc::CompletionQueue queue_;
  std::vector<char> out_;
  std::vector<char> in_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "async");
  const std::string address = "unix-abstract:sojourn.peer_grpc." + std::to_string(getpid());
  bench::half_of_two half("peer_grpc", options.cpus);
  if (half.is_second()) serve(half, address);
  char ready = 0;
  if (!half.receive(&ready, 1) || ready == 0) {
    std::fprintf(stderr, "peer_grpc: its server does not start\n");
    return 1;
  }
  client self(address);
  const int status = bench::obey("peer_grpc", options,
                                 [&](const bench::command& what) { return self.measure(what); });
  std::fflush(nullptr);
  std::_Exit(status);  // The server is killed with this process; it has nothing to finish.
}
