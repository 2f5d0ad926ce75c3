// SPDX-License-Identifier: MIT
/// Calls of several ranks, made as one: arguments side by side along the last Fortran dimension. Knows nothing of
/// Python.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "node/board.hpp"
#include "node/node_messages.hpp"

namespace fpt {

/// What a rank has asked for. Texts and arrays are where they were sent.
struct RankCall {
  std::size_t rank;  ///< among those of the owner
  Channel* channel;
  Request request;
  std::vector<fpt_arg> inputs, others;
  int64_t end;  ///< of the request

  /// Whether it predicts, and each array has the same extent in its last dimension, so that rows of others may follow.
  bool can_be_joined() const;
  /// Scalars and texts among the arguments, which are the same in calls that are made as one.
  std::string values() const;
  int64_t rows() const;
};

/// Runs calls, and writes their answers.
class Batches {
 public:
  /// @param name        of the file, for texts
  /// @param locks_pages of what a GPU reads and writes
  Batches(fpt_module module, std::string name, Board& board, bool locks_pages)
      : module_(module), name_(std::move(name)), board_(board), locks_pages_(locks_pages) {}

  /// The request of a rank. FPT_ERR_INTERNAL for one that cannot be.
  RankCall read(std::size_t rank, Channel& channel);
  /// Run calls that are there at the same time, those that can as one. @param is_everyone  no rank has not asked
  void run(std::vector<RankCall>& calls, bool is_everyone);

 private:
  /// Where the arrays of a batch lie that comes again: for each array where those of each rank begin.
  struct Plan {
    std::string batch, kind;
    std::vector<std::size_t> ranks;
    std::vector<std::vector<int64_t>> begins;  // of each rank
  };
  using Calls = std::vector<RankCall*>;

  void run_as_one(const std::string& kind, const Calls& calls, bool is_everyone);
  fpt_status call(const RankCall& like, std::vector<fpt_arg>& inputs, std::vector<fpt_arg>& others) const;
  /// That of a call that has a place.
  const Plan& plan_of(const RankCall& call) const {
    return plans_.at(static_cast<std::size_t>(call.request.places - 1));
  }
  bool is_in_place(const Calls& calls) const;
  /// Arguments of the batch; arrays that are not side by side are copied.
  static std::vector<fpt_arg> joined(const Calls& calls, std::vector<fpt_arg> RankCall::* which, bool in_place,
                                     std::vector<std::vector<char>>& copies);
  /// Why the rows of one call have other results alone; empty if they have not.
  /// @param others  of the whole batch, with results
  /// @param before  what the outputs of that call held
  std::string difference(const Calls& calls, std::size_t which, const std::vector<fpt_arg>& others,
                         std::vector<std::vector<char>>& before) const;
  /// Number of a new plan for a batch that has come twice; 0 for none.
  int64_t planned(const std::string& kind, const Calls& calls);
  /// The same answer for all, the first of whom has its warnings. @param plan  of the next such batch, 0 for none
  void answer(const Calls& calls, Outcome outcome, int64_t plan);

  const fpt_module module_;
  const std::string name_;
  Board& board_;
  const bool locks_pages_;
  std::map<std::string, std::size_t> checked_;  // batches of each kind that several ranks had
  std::map<std::string, int> seen_;
  std::vector<Plan> plans_;  // number 1 is the first
};

}  // namespace fpt
