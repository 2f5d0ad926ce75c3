// SPDX-License-Identifier: MIT
/// The process that works for a rank: calls of what was loaded before it was forked. Knows nothing of Python.
#pragma once

#include <string>
#include <vector>

#include "base/mpi_sum.hpp"
#include "ftn_pytorch.h"
#include "node/channel.hpp"
#include "node/node_messages.hpp"

namespace fpt {

/// Warnings are kept from now on, for whoever asks next.
void keep_warnings();
std::vector<std::string> kept_warnings();

/// Whether Python runs a file as a script.
bool is_script(const std::string& file) noexcept;

/// Throws what has just failed on this thread.
void require_success(fpt_status status);

/// Gradients as the rank has them, while this lives.
class GradientsOfRank {
 public:
  explicit GradientsOfRank(const Request& request) {
    if (request.gradients || fpt_scope_begin(&scope_, nullptr, 0) != FPT_OK) return;
    if (fpt_scope_gradients(scope_, 0) != FPT_OK) return;  // there is no torch, which alone asks for it
  }
  ~GradientsOfRank() { fpt_scope_leave(&scope_); }
  GradientsOfRank(const GradientsOfRank&) = delete;
  GradientsOfRank& operator=(const GradientsOfRank&) = delete;

 private:
  fpt_scope scope_ = 0;
};

/// Answer a request whose end is known; results may follow.
SegmentWriter answer(Channel& channel, int64_t end, const Outcome& outcome);

/// Run the request that is there, and write its answer.
void answer_request(Channel& channel, fpt_module module);

/// Answer one request after the other, until the rank is gone.
void work(Channel& channel, fpt_module module);

/// MpiSum::combine() in a call of the worker: the rank does it, by its MPI. FPT_ERR_ARGUMENT outside of such a call.
FPT_API void combine_over_ranks(void* values, int64_t count, int32_t dtype, Reduction reduction,
                                const std::string& purpose, CallOfNetwork call);

}  // namespace fpt
