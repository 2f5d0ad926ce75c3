// SPDX-License-Identifier: MIT
/// Arguments as models want them: memory, scalars and texts, and tensors where a graph is recorded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calls/runner.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/model.hpp"

namespace fpt::direct {

/// What becomes of the graphs that tensors among the inputs have: an error, nothing, or those of the results, in which
/// the parameters of the model may be, too.
enum class Graphs { refused, dropped, recorded, recorded_for_parameters };

/// FPT_ERR_ARGUMENT for two arguments of one name, and for one without a name behind one that has a name, unless it is
/// the only target.
void require_names(Args inputs, Args targets, const CallName& call);

/// Arguments that are memory, scalars and texts already are not touched.
class DirectArguments {
 public:
  /// @param what         names them in messages, "input"
  /// @param same_layout  axis order of the module
  /// FPT_ERR_ARGUMENT for a graph that is refused, and for what is wrong with an argument.
  DirectArguments(Args args, const char* what, const CallName& call, Graphs graphs, bool same_layout);

  Inputs get() const noexcept { return {args_.first, args_.count, records() ? recorded_.data() : nullptr}; }
  /// Whether a graph is recorded.
  bool records() const noexcept { return !recorded_.empty(); }
  /// Let an answer keep what it needs of the memory that ends with the arguments, and tell torch which tensors the call
  /// has changed, so that a gradient which needs the values before is refused.
  void hand_over(DirectAnswer& answer) const;

 private:
  struct Owned {
    const fpt_arg* arg;  // resolved; with a handle where the memory is not the caller's
    std::shared_ptr<void> owner;
  };

  void resolve(int32_t index);
  /// Describe a tensor that is passed as memory.
  void resolve_memory(int32_t index, const TensorPtr& given);
  /// "input 2 of forward of net"
  std::string label(int32_t index) const;

  Args args_;
  const char* const what_;
  const CallName call_;
  const bool same_layout_;
  std::vector<fpt_arg> resolved_;
  std::vector<Owned> owned_;
  std::vector<std::pair<int32_t, TensorPtr>> tensors_;  // of torch, passed as memory
  std::vector<std::shared_ptr<const std::string>> texts_;
  std::vector<at::Tensor> recorded_;
};

}  // namespace fpt::direct
