// SPDX-License-Identifier: MIT
/// Which rank of an MPI job this process is, as its launcher tells, and names of files that each rank has for itself.
#pragma once

#include <optional>
#include <string>

#include "ftn_pytorch.h"

namespace fpt {

struct Rank {
  int number = 0;
  int count = 1;
};

/// From the variables of Open MPI, MPICH (PMI), MVAPICH2 and Slurm, in this order; 0 of 1 where there are none.
FPT_API Rank rank() noexcept;

/// Rank among those that train together, where a load has no communicator: `rank()`, but in a worker of a node, which
/// has joined as a rank of one.
FPT_API Rank rank_in_training() noexcept;
void join_training(Rank rank) noexcept;

/// Rank among those on this node, by the variables of Open MPI, MPICH and Intel MPI, MVAPICH2, Slurm, PALS and
/// torchrun; 0 where there are none.
int local_rank() noexcept;

/// What tells the ranks of one job from those of another, as job() of system/launcher.py; none outside of one. A best
/// effort: a name that Open MPI or Slurm give, else the node and the parent that its ranks have in common.
FPT_API std::optional<std::string> job();

/// A warning of what all ranks of a job have alike, such as a variable with an invalid value: rank 0 gives it.
FPT_API void warn_of_job(const std::string& text);

/// `name` with every "%r" replaced by the rank: that of the job, or another one.
FPT_API std::string with_rank(std::string name, int number = rank().number);

/// The same for a file that each rank writes. Where there are several ranks and no "%r", the rank goes before the
/// extension: "trace.json" becomes "trace.3.json".
std::string name_for_rank(const std::string& name);

}  // namespace fpt
