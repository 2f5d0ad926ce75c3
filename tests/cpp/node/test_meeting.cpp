// SPDX-License-Identifier: MIT
/// How the process of a node is started. MPI is played.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "node/descriptor.hpp"
#include "node/meeting.hpp"
#include "played_mpi.hpp"
#include "support.hpp"

namespace fpt {
namespace {

/// All files that this process may have are open, but for one.
class OneDescriptor {
 public:
  OneDescriptor() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{256, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (Descriptor made(dup(STDERR_FILENO)); made; made = Descriptor(dup(STDERR_FILENO)))
      taken_.push_back(std::move(made));
    taken_.pop_back();
  }
  ~OneDescriptor() { setrlimit(RLIMIT_NOFILE, &before_); }
  OneDescriptor(const OneDescriptor&) = delete;
  OneDescriptor& operator=(const OneDescriptor&) = delete;

 private:
  rlimit before_{};
  std::vector<Descriptor> taken_;
};

TEST(Meeting, SaysThatThereIsNoDescriptorForTheProcessThatItWouldStart) {
  PlayedMpi mpi;
  mpi.size = 1;
  played = &mpi;
  MpiSum ranks(7, 10.0);
  {
    const OneDescriptor one;
    EXPECT_FAILS(test::outcome_of([&] { const Meeting meeting(ranks, 1, {"per=\"node\"", "", ""}); }),
                 FPT_ERR_INTERPRETER, "could not be started: Too many open files");
  }
  played = nullptr;
}

}  // namespace
}  // namespace fpt
