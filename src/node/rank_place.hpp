// SPDX-License-Identifier: MIT
/// What makes a process that works for a rank like the process of that rank: environment, folder, cores. Knows nothing
/// of Python.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace fpt {

struct RankPlace {
  int32_t rank = 0, size = 1;          ///< in the communicator
  int64_t parent = 0;                  ///< process that has started the rank
  int64_t threads = 0;                 ///< what the program has asked for, 0 if nothing
  std::string folder;                  ///< working directory
  std::vector<std::string> variables;  ///< "NAME=value"
  std::string cores;                   ///< mask of sched_getaffinity

  /// Of this process.
  static RankPlace here(int32_t rank, int32_t size);

  template <class Self>
  static auto fields(Self& of) {
    return std::tie(of.rank, of.size, of.parent, of.threads, of.folder, of.cores, of.variables);
  }
  /// Make it that of this process, with the variables that the load has set, but for those of which the rank has had
  /// another value than the load. What cannot be had stays as it is.
  /// @param before  variables of this process before the load
  void enter(const std::vector<std::string>& before);
  /// Threads that torch has in the process of the rank: what the program has asked for, OMP_NUM_THREADS, its cores.
  int64_t team() const;
};

/// Warn of what observes calls in Python, and sees none where they are made in another process.
/// @param way  of loading, "per=\"node\""
void warn_of_observers(const char* way);

/// The environment for the process that loads for all ranks: that of this process, but it computes with one thread,
/// since threads do not survive the fork that follows, and observes nothing, since calls are seen where they are made.
std::vector<std::string> environment_of_loader();
/// The same for a process that computes for ranks and is none: it is told of no job.
std::vector<std::string> environment_of_owner();

}  // namespace fpt
