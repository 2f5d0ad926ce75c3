// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "node/channel.hpp"
#include "node/local_socket.hpp"

namespace fpt {
namespace {

/// A process that answers each number with its double, `calls` times.
pid_t doubling(Channel& channel, int calls) {
  const pid_t child = fork();
  if (child != 0) {
    channel.forget_other_end();
    return child;
  }
  const std::vector<int> ends = channel.other_end();
  Channel own(Descriptor(dup(ends[0])), Descriptor(dup(ends[1])), Descriptor(dup(ends[2])));
  channel.end();  // of this copy
  channel.forget_other_end();
  for (int i = 0; i < calls && own.wait(); ++i) {
    const int64_t number = SegmentReader(own.memory(), 0).integer();
    SegmentWriter(own.memory(), 8).integer(2 * number);
    own.tell();
  }
  _exit(0);
}

TEST(Channel, CarriesCallsAndTellsTheEnd) {
  Channel channel;
  const pid_t child = doubling(channel, 3);
  for (int i = 1; i <= 3; ++i) {
    SegmentWriter(channel.memory(), 0).integer(i);
    channel.tell();
    ASSERT_TRUE(channel.wait());
    EXPECT_EQ(SegmentReader(channel.memory(), 8).integer(), 2 * i);
  }
  waitpid(child, nullptr, 0);
  channel.tell();  // writes to nobody, which is no signal
  EXPECT_FALSE(channel.wait());
}

TEST(Channel, LetsTheOtherProcessSeeTheEndOfThisOne) {
  Channel channel;
  const pid_t child = doubling(channel, 1000);
  EXPECT_FALSE(channel.wait(std::chrono::milliseconds(10))) << "nobody has asked";
  channel.end();
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Channel, IsWaitedForAlsoWhereSignalsCome) {
  Channel channel;
  const pid_t child = doubling(channel, 1);
  static volatile std::sig_atomic_t signals;
  signals = 0;
  const auto before = std::signal(SIGALRM, [](int) { signals = signals + 1; });
  const itimerval often{{0, 1000}, {0, 1000}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (signals == 0) usleep(100);
  std::thread later([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (signals < 20) usleep(1000);
    SegmentWriter(channel.memory(), 0).integer(21);
    channel.tell();
  });
  EXPECT_TRUE(channel.wait(std::chrono::seconds(60)));
  later.join();
  setitimer(ITIMER_REAL, &never, nullptr);
  std::signal(SIGALRM, before);
  EXPECT_EQ(SegmentReader(channel.memory(), 8).integer(), 42);
  waitpid(child, nullptr, 0);
}

TEST(LocalSocket, HandsDescriptorsOver) {
  const std::string name = "ftn_pytorch-test-" + std::to_string(getpid());
  const Descriptor listening = listen_at(name);
  const Descriptor one = connected_to(name), other = accepted(listening.get());
  ASSERT_TRUE(one && other);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const Descriptor reads(pipes[0]);
  Descriptor writes(pipes[1]);
  ASSERT_TRUE(send_message(one.get(), "take", {reads.get(), writes.get()}));
  const Message message = receive_message(other.get());
  EXPECT_EQ(message.text, "take");
  ASSERT_EQ(message.descriptors.size(), 2u);
  ASSERT_EQ(write(message.descriptors[1].get(), "x", 1), 1);
  char letter = 0;
  EXPECT_EQ(read(reads.get(), &letter, 1), 1);
  EXPECT_EQ(letter, 'x');
}

TEST(LocalSocket, TellsTheEndOfTheOtherSide) {
  const std::string name = "ftn_pytorch-end-" + std::to_string(getpid());
  const Descriptor listening = listen_at(name);
  Descriptor one = connected_to(name);
  const Descriptor other = accepted(listening.get());
  one.reset();
  EXPECT_EQ(receive_message(other.get()).text, "");
  EXPECT_FALSE(send_message(other.get(), "anybody"));
  EXPECT_FALSE(connected_to(name + "-nobody"));
}

}  // namespace
}  // namespace fpt
