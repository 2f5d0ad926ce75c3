// SPDX-License-Identifier: MIT
/// How the ranks of a node find each other, and the process that loads for all of them. Knows nothing of Python.
///
/// Each rank listens at a socket and tells its name to all ranks of the communicator, in one collective operation. The
/// first rank of each node then starts the process, which gets the socket of that rank, and all of them connect to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/mpi_sum.hpp"
#include "node/channel.hpp"

namespace fpt {

/// What the process of a node says first: it takes descriptors one rank after the other, since a user may not have many
/// under way. What a rank says: make a worker of the descriptors that come with it (memory, where the worker reads and
/// writes, its standard files); tell how it has ended.
constexpr const char *come_message = "come", *make_worker_message = "worker", *tell_end_message = "end",
                     *unknown_end_message = "?", *memory_message = "memory";

/// Who shares a process, and what it is to do.
struct Sharing {
  const char* per;     ///< the option of load
  std::string place;   ///< of those ranks of a node that share it; empty for all
  std::string device;  ///< where it computes for all of them; empty: it makes a worker for each
};

/// The connection of a rank to the process of its node.
class Meeting {
 public:
  /// Meet the other ranks, and connect. All ranks of the communicator call this.
  /// @param request  number of what is to be loaded
  /// @param sharing  lives as long as the call
  /// FPT_ERR_ARGUMENT, on all ranks of a node, where that is not the same on all of them; FPT_ERR_INTERPRETER where no
  /// process can be started or reached; what MpiSum::gather() throws.
  Meeting(MpiSum& ranks, std::uint64_t request, const Sharing& sharing);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Let the process of the node make a worker at the other end of a channel. False if it is gone.
  [[nodiscard]] bool make_worker(Channel& channel);
  /// Memory that the process of the node hands over; none if it is gone.
  Descriptor memory();
  /// How the worker has ended, such as "by signal 9, Killed"; empty if that cannot be told.
  std::string end_of_worker();

 private:
  Descriptor control_;
  bool is_invited_ = false;
  pid_t started_ = 0;  // by this rank
};

}  // namespace fpt
