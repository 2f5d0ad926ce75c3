// SPDX-License-Identifier: MIT
#include "node/channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace fpt {
namespace {

std::pair<int, int> made_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(FPT_ERR_FILE, "a pipe between processes of a node could not be made: ", std::strerror(errno));
  return {ends[0], ends[1]};
}

}  // namespace

Channel::Channel() : memory_(std::make_unique<Segment>()) {
  const auto [asked, asks] = made_pipe();
  other_in_ = Descriptor(asked);
  out_ = Descriptor(asks);
  const auto [answered, answers] = made_pipe();
  in_ = Descriptor(answered);
  other_out_ = Descriptor(answers);
}

Channel::Channel(Descriptor memory, Descriptor in, Descriptor out)
    : memory_(std::make_unique<Segment>(std::move(memory))), in_(std::move(in)), out_(std::move(out)) {}

std::vector<int> Channel::other_end() const { return {memory_->descriptor(), other_in_.get(), other_out_.get()}; }

void Channel::forget_other_end() noexcept { other_out_.reset(); }

void Channel::tell() noexcept {
  const char word = 1;
  while (write(out_.get(), &word, 1) < 0 && errno == EINTR) {
  }
}

bool Channel::wait() noexcept {
  char word;
  ssize_t count;
  while ((count = read(in_.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  return count == 1;
}

bool Channel::wait(std::chrono::milliseconds limit) noexcept {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + limit;
  pollfd look{in_.get(), POLLIN, 0};
  int found;
  while ((found = poll(&look, 1, static_cast<int>(limit.count()))) < 0 && errno == EINTR)
    limit = std::max({}, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()));
  return found > 0 && wait();
}

}  // namespace fpt
