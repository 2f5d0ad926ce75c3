// SPDX-License-Identifier: MIT
/// Sockets between processes of one node: names that are in no file system, short messages, and descriptors that go
/// with them (unix(7), SCM_RIGHTS). Knows nothing of Python.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "node/descriptor.hpp"

namespace fpt {

/// A socket at which a process listens. FPT_ERR_FILE.
Descriptor listen_at(const std::string& name);
/// The next connection; nothing if it has gone, or comes from another user.
Descriptor accepted(int listening) noexcept;
/// A connection; nothing, with errno, if nobody listens there.
Descriptor connected_to(const std::string& name) noexcept;

/// Longest text of a message, in bytes.
constexpr std::size_t most_of_message = 256;

struct Message {
  std::string text;  ///< empty: the other side is gone
  std::vector<Descriptor> descriptors;
};

/// Send a text that is not empty, with descriptors. False if the other side is gone.
[[nodiscard]] bool send_message(int socket, std::string_view text, const std::vector<int>& descriptors = {}) noexcept;
Message receive_message(int socket);

}  // namespace fpt
