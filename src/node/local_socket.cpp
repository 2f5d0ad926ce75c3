// SPDX-License-Identifier: MIT
#include "node/local_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace fpt {
namespace {

constexpr int many = 4096;  // connections that wait; the system has a limit of its own
constexpr std::size_t most_descriptors = 8;

/// An abstract name begins with a zero byte.
struct Address {
  explicit Address(const std::string& name) noexcept {
    value.sun_family = AF_UNIX;
    const std::size_t count = std::min(name.size(), sizeof value.sun_path - 1);
    std::memcpy(value.sun_path + 1, name.data(), count);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&value); }

  sockaddr_un value{};
  socklen_t length;
};

Descriptor made_socket() noexcept { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

/// Whether the process at the other side is one of this user.
bool is_own(const Descriptor& connection) noexcept {
  ucred other{};
  socklen_t length = sizeof other;
  return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == getuid();
}

}  // namespace

Descriptor listen_at(const std::string& name) {
  Descriptor made = made_socket();
  const Address address(name);
  if (!made || bind(made.get(), address.get(), address.length) != 0 || listen(made.get(), many) != 0)
    fail(FPT_ERR_FILE,
         "the ranks of a node cannot speak to each other, since no socket could be made: ", std::strerror(errno));
  return made;
}

Descriptor accepted(int listening) noexcept {
  Descriptor made(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
  if (made && !is_own(made)) made.reset();
  return made;
}

Descriptor connected_to(const std::string& name) noexcept {
  Descriptor made = made_socket();
  const Address address(name);
  if (!made) return made;
  int failed;
  while ((failed = connect(made.get(), address.get(), address.length)) != 0 && errno == EINTR) {
  }
  const int reason = errno;
  if (failed != 0 || !is_own(made)) made.reset();
  errno = reason;
  return made;
}

bool send_message(int socket, std::string_view text, const std::vector<int>& descriptors) noexcept {
  iovec part{const_cast<char*>(text.data()), std::min(text.size(), most_of_message)};
  alignas(cmsghdr) char room[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t bytes = std::min(descriptors.size(), most_descriptors) * sizeof(int);
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  ssize_t sent;
  while ((sent = sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent > 0;
}

Message receive_message(int socket) {
  Message found;
  char text[most_of_message];
  iovec part{text, sizeof text};
  alignas(cmsghdr) char room[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  ssize_t count;
  while ((count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (count <= 0) return found;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < descriptors; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof number);
      found.descriptors.emplace_back(number);
    }
  }
  found.text.assign(text, static_cast<std::size_t>(count));
  return found;
}

}  // namespace fpt
