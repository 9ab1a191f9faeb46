// SPDX-License-Identifier: Apache-2.0
#include "transport/link/agent_channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sojourn::detail {

bool send_packet(int channel, const void* packet, std::size_t bytes, int descriptor) {
  iovec part{const_cast<void*>(packet), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  ssize_t n;
  while ((n = sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return n == static_cast<ssize_t>(bytes);
}

bool take_packet(int channel, void* packet, std::size_t bytes, int& descriptor, bool& has_ended) {
  descriptor = -1;
  iovec part{packet, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  while ((n = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  has_ended = n == 0 || (n < 0 && errno != EAGAIN);
  if (n < 0) return false;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
      std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  }
  if (n == static_cast<ssize_t>(bytes)) return true;
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
  return false;
}

}  // namespace sojourn::detail
