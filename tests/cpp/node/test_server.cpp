// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "node/local_socket.hpp"
#include "node/meeting.hpp"
#include "node/node_arguments.hpp"
#include "node/server.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// Who loads, and what. Nothing runs Python here, and there is no such GPU, so that is known before the load.
struct Case {
  const char *name, *file, *device;  // empty: a node
};

/// What a rank is for the process that loads for its node.
class PlayedRank {
 public:
  explicit PlayedRank(const std::string& socket) : control_(connected_to(socket)) {}

  Outcome join(const std::string& file) {
    EXPECT_EQ(receive_message(control_.get()).text, come_message);
    const Args none{nullptr, 0};
    const CallName call{"load", {}};
    SegmentWriter writer(channel_.memory(), 0);
    writer.add(Request{Wish::load, file});
    const SentArguments options(none, "option", call, writer), config(none, "config", call, writer);
    writer.add(0, RankPlace::here(0, 2));
    std::vector<int> descriptors = channel_.other_end();
    for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) descriptors.push_back(each);
    EXPECT_TRUE(send_message(control_.get(), make_worker_message, descriptors));
    channel_.forget_other_end();
    EXPECT_TRUE(channel_.wait()) << "the process has ended";
    SegmentReader reader(channel_.memory(), writer.end());
    EXPECT_EQ(reader.get<Answering>(), Answering::ended);
    return reader.get<Outcome>();
  }

 private:
  Descriptor control_;
  Channel channel_;
};

class ServerTest : public testing::TestWithParam<Case> {
 protected:
  const std::string socket = concat("ftn_pytorch-test-server-", getpid()), file = GetParam().file;
  pid_t server = 0;

  void SetUp() override {
    const Descriptor listening = listen_at(socket);
    server = fork();
    if (server != 0) return;
    alarm(100);  // in place of waiting for good
    const std::string device = GetParam().device;
    const int taken = dup(listening.get());
    try {
      (device.empty() ? node_server(taken, 2) : gpu_server(taken, 2, device))->serve();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  /// How the server has ended.
  int end() const {
    int status = -1;
    waitpid(server, &status, 0);
    return status;
  }
};

TEST_P(ServerTest, IsOverWhenAllRanksAreGoneAlsoOneThatHasNotJoined) {
  static_cast<void>(PlayedRank(socket));
  EXPECT_NE(PlayedRank(socket).join(file).status, FPT_OK);
  EXPECT_EQ(end(), 0);
}

TEST_P(ServerTest, TellsEachRankWhatHasFailedBeforeTheLoad) {
  {
    PlayedRank one(socket), other(socket);
    const Outcome first = one.join(file), second = other.join(file);
    EXPECT_NE(first.status, FPT_OK);
    EXPECT_EQ(second.status, first.status);
    EXPECT_FALSE(first.text.empty());
    EXPECT_EQ(second.text, first.text);
  }
  EXPECT_EQ(end(), 0);
}

INSTANTIATE_TEST_SUITE_P(Processes, ServerTest,
                         testing::Values(Case{"node", "/nonexistent/closure.py", ""},
                                         Case{"gpu", "/nonexistent/closure.py", "cuda:63"},
                                         Case{"host", "/nonexistent/net.pt", "cpu"}),
                         [](const testing::TestParamInfo<Case>& each) { return each.param.name; });

}  // namespace
}  // namespace fpt
