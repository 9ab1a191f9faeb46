// SPDX-License-Identifier: Apache-2.0
// A slow cable: carries frames between a device that is there and a TAP device that it makes, each
// way in their order, and lets none through before it has been on its way for so long. Ends when it
// is killed, and the TAP device with it. (The kernel's own netem is not everywhere.) Usage:
// slow_link DEVICE TAP MICROSECONDS JITTER-MICROSECONDS
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::size_t virtio_header_bytes = 10;  // linux/virtio_net.h, which is not C++

// Of what one host has sent and the other has not got; what is more is dropped, as a switch would.
constexpr std::size_t bytes_most = 64 << 20;

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "slow_link: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

/// Both sides put a virtio_net_hdr before each frame, which says what the devices have left to each
/// other: checksums that are not there yet, and frames that are to be cut in pieces.
int open_device(const char* name) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
  if (fd < 0) refuse("socket");
  const int on = 1;
  if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0) refuse("PACKET_VNET_HDR");
  if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0)
    refuse("PACKET_IGNORE_OUTGOING");
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(ETH_P_ALL);
  at.sll_ifindex = static_cast<int>(if_nametoindex(name));
  if (at.sll_ifindex == 0) refuse(name);
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) refuse(name);
  packet_mreq all{};
  all.mr_ifindex = at.sll_ifindex;
  all.mr_type = PACKET_MR_PROMISC;
  if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0)
    refuse("PACKET_MR_PROMISC");
  const int room = 8 << 20;
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  return fd;
}

int make_tap(const char* name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) refuse("/dev/net/tun");
  ifreq wanted{};
  std::snprintf(wanted.ifr_name, sizeof wanted.ifr_name, "%s", name);
  wanted.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(fd, TUNSETIFF, &wanted) != 0) refuse(name);
  if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) refuse("TUNSETOFFLOAD");
  return fd;
}

struct frame {
  clock_type::time_point due;
  std::vector<char> bytes;
};

struct direction {
  int from;
  int to;
  std::deque<frame> on_their_way{};
  std::size_t bytes = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5)
    return std::fputs("slow_link DEVICE TAP MICROSECONDS JITTER-MICROSECONDS\n", stderr), 2;
  const microseconds delay(std::atol(argv[3]));
  const long jitter_us = std::atol(argv[4]);
  const int device = open_device(argv[1]);
  const int tap = make_tap(argv[2]);
  std::mt19937 generator(1);
  std::array<direction, 2> ways{{{device, tap}, {tap, device}}};
  std::vector<char> room(virtio_header_bytes + (1 << 17));
  for (;;) {
    auto next = clock_type::time_point::max();
    for (const direction& way : ways) {
      if (!way.on_their_way.empty()) next = std::min(next, way.on_their_way.front().due);
    }
    timespec left{3600, 0};
    if (next != clock_type::time_point::max()) {
      const auto ns = std::max<long>(0, std::chrono::nanoseconds(next - clock_type::now()).count());
      left = {ns / 1'000'000'000, ns % 1'000'000'000};
    }
    std::array<pollfd, 2> waits{{{device, POLLIN, 0}, {tap, POLLIN, 0}}};
    if (ppoll(waits.data(), waits.size(), &left, nullptr) < 0 && errno != EINTR) refuse("poll");
    for (direction& way : ways) {
      for (;;) {
        const ssize_t n = read(way.from, room.data(), room.size());
        if (n <= 0) break;
        const auto size = static_cast<std::size_t>(n);
        if (way.bytes + size > bytes_most) continue;
        auto due = clock_type::now() + delay;
        if (jitter_us > 0)
          due +=
              microseconds(static_cast<long>(generator() % static_cast<unsigned long>(jitter_us)));
        // None passes another.
        if (!way.on_their_way.empty()) due = std::max(due, way.on_their_way.back().due);
        way.on_their_way.push_back({due, {room.data(), room.data() + size}});
        way.bytes += size;
      }
      const auto now = clock_type::now();
      while (!way.on_their_way.empty() && way.on_their_way.front().due <= now) {
        const frame& f = way.on_their_way.front();
        // Where the device takes no more, or is down, the frame is lost, as in a cable.
        (void)!write(way.to, f.bytes.data(), f.bytes.size());
        way.bytes -= f.bytes.size();
        way.on_their_way.pop_front();
      }
    }
  }
}
