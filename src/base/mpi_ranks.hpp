// SPDX-License-Identifier: MIT
/// Calls of the MPI of the program, and operations of all ranks that end. Knows nothing of Python.
///
/// MPI is called by the names of its Fortran bindings in the libraries that the process has loaded. So nothing is built
/// against an MPI, a handle of Fortran is all that has to be known of it, and no constant of an implementation is
/// needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ftn_pytorch.h"

namespace fpt {

/// Call a subroutine of MPI: everything by address, the error code last, which is added here.
///
/// purpose: what failures begin with. FPT_ERR_ARGUMENT if the process has no such subroutine, FPT_ERR_PYTHON if it
/// fails.
FPT_API void call_mpi(const char* purpose, const char* name, std::vector<void*> arguments);

/// The ranks of one communicator, as this one sees them. One operation at a time, others wait.
class MpiRanks {
 public:
  /// communicator: integer handle of Fortran. limit_seconds: how long a rank waits for the others in a call.
  ///
  /// Asks for rank and size, which other ranks need not do. FPT_ERR_ARGUMENT if this process has no MPI that could be
  /// called, if MPI is not running, or if the handle is that of no intra-communicator.
  MpiRanks(int communicator, double limit_seconds);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// False after its ranks have waited in vain for one of them.
  bool is_usable() const noexcept { return is_usable_; }
  FPT_API void give_up(const std::string& why);

  FPT_API void wait_up_to(double limit_seconds);
  /// Called four times a second in a wait, which ends with what that throws.
  void call_meanwhile(std::function<void()> look) { meanwhile_ = std::move(look); }

  /// One operation that ends, because nobody waits in it for a rank that failed somewhere else.
  ///
  /// name: of a subroutine that begins it; arguments: of that before the communicator. purpose: what texts call it.
  /// memory: what MPI writes to, which is never freed if the operation does not end; empty where the caller sees to it.
  /// FPT_ERR_PYTHON if a rank does not come within the limit, or if MPI fails. Nothing can be exchanged after that.
  FPT_API void exchange(const char* name, std::vector<void*> arguments, const char* purpose,
                        std::shared_ptr<void> memory = nullptr);

 protected:
  /// FPT_ERR_PYTHON after a wait in vain, FPT_ERR_ARGUMENT if MPI does not run.
  void require_usable(const char* purpose) const;

  /// Node and process of each rank, one after the other: so that a process that has ended can be told by its rank.
  std::vector<double> roll_;
  /// Those of this rank. Ranks of one node, which have the same number, see each other's processes; -1 is unknown.
  static std::pair<double, double> node_and_process();

 private:
  struct Begun;

  void wait(Begun& begun, const char* purpose);
  void keep(std::unique_ptr<Begun> begun, const std::string& why);
  double process_of(int rank) const;
  int rank_that_ended() const;

  int communicator_;
  double limit_;
  int rank_ = 0;
  int size_ = 1;
  std::mutex turn_;
  std::atomic<bool> is_usable_{true};
  std::string failure_;  ///< written once, before that
  std::function<void()> meanwhile_;
};

}  // namespace fpt
