// SPDX-License-Identifier: MIT
#include "values/assignment.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

void call(std::string_view method, const TensorPtr& tensor) { call_torch(method, {{tensor}}, tensor->same_layout()); }

/// torch changes the values before it refuses to.
void require_changeable(const TensorFlags& flags) {
  if (flags.is_inference)
    fail(FPT_ERR_ARGUMENT,
         "a tensor that was made in inference mode cannot be changed: change a copy of it, torch_call(\"clone\", ...)");
}

/// All of the memory behind a tensor. That of a storage that was resized to nothing is not looked for by torch.
Range memory_of(Engine& engine, const TensorPtr& tensor) {
  const Range memory = engine.memory_of(*tensor);
  if (memory.begin != memory.end) return memory;
  const std::vector<int64_t> shape = engine.describe(*tensor).shape;
  if (std::find(shape.begin(), shape.end(), 0) == shape.end())
    fail(FPT_ERR_ARGUMENT, "the memory of a tensor is gone: its storage was resized to 0 bytes");
  return memory;
}

/// Into another one of its layout, in whose memory it may lie: then a copy is made, which is needless for other parts.
void copy_into(Engine& engine, const TensorPtr& target, const TensorPtr& value) {
  const bool layout = target->same_layout();
  const Range here = memory_of(engine, target), there = memory_of(engine, value);
  const bool may_overlap = here.begin < there.end && there.begin < here.end;
  const TensorPtr source = may_overlap ? call_for_tensor("Tensor.clone", {{value}}, layout) : value;
  engine.operate(copy_operation, target.get(), source.get(), nullptr, layout);
}

/// Values that are no more there have no graph. A view of a leaf keeps its own: the leaf has changed with it.
void end_graph(const TensorPtr& tensor, const TensorFlags& flags) {
  if (flags.has_graph && !flags.is_view) call("Tensor.detach_", tensor);
}

/// Gradients are computed, or are not, as long as this lives.
class GradientMode {
 public:
  explicit GradientMode(bool wanted) : changes_(engine().computes_gradients() != wanted), before_(!wanted) {
    if (changes_) engine().compute_gradients(wanted);
  }
  ~GradientMode() {
    try {
      if (changes_) engine().compute_gradients(before_);
    } catch (const std::exception&) {  // what cannot be switched on any more is not used
    }
  }
  GradientMode(const GradientMode&) = delete;
  GradientMode& operator=(const GradientMode&) = delete;

 private:
  const bool changes_, before_;
};

}  // namespace

void overwrite(const TensorPtr& target, const TorchValue& value) {
  const bool layout = target->same_layout();
  const auto* tensor = std::get_if<TensorPtr>(&value);
  Engine& chosen = tensor ? engine_of(*target, **tensor) : engine_of(*target);
  const TensorFacts before = chosen.describe(*target), given = tensor ? chosen.describe(**tensor) : TensorFacts();
  if (tensor && given.shape != before.shape)
    fail(FPT_ERR_SHAPE, "the tensor is ", text_of(before, layout), ", the array ", text_of(given, layout),
         "; nothing is broadcast");
  require_changeable(before);
  // other parts of what a view shows still have a graph, in which this part ends
  const bool is_recorded = before.is_view && !before.is_of_leaf;
  std::optional<GradientMode> mode;  // where nothing requires gradients, none are recorded
  if (before.requires_grad || given.requires_grad) mode.emplace(is_recorded);
  if (!tensor) {
    memory_of(chosen, target);
    call_torch("Tensor.fill_", {{target}, {value}}, layout);
  } else if (is_recorded && given.requires_grad) {
    copy_into(chosen, target, call_for_tensor("Tensor.detach", {{*tensor}}, layout));
  } else {
    copy_into(chosen, target, *tensor);
  }
  end_graph(target, before);
}

void assign(const TensorPtr& target, const TensorPtr& value) {
  Engine& chosen = engine_of(*target, *value);
  const TensorFlags before = chosen.flags_of(*target);
  const bool has_graph = chosen.flags_of(*value).requires_grad;
  require_changeable(before);
  if (before.has_graph)
    call("Tensor.detach_", target);  // the graph of earlier values would grow with every assignment
  else if (before.requires_grad && !has_graph)
    call_torch("Tensor.requires_grad_", {{target}, {false}}, target->same_layout());
  std::optional<GradientMode> mode;  // as above
  if (has_graph) mode.emplace(true);
  copy_into(chosen, target, value);
}

void write_through(const TensorPtr& target, const TensorPtr& given) {
  const TensorPtr value =
      given->same_layout() == target->same_layout() ? given : reversed_view(given, target->same_layout());
  Engine& chosen = engine_of(*target, *value);
  const TensorFacts before = chosen.describe(*target), facts = chosen.describe(*value);
  const bool fits = before.shape == facts.shape;
  if (!fits || before.dtype != facts.dtype)
    fail(fits ? FPT_ERR_DTYPE : FPT_ERR_SHAPE, "the array is ", text_of(before, target->same_layout()),
         ", and what is assigned to its tensor ", text_of(facts, target->same_layout()),
         "; nothing is broadcast or converted");
  try {
    if (before.has_graph) call("Tensor.detach_", target);  // as above
    copy_into(chosen, target, value);
  } catch (const Error& error) {
    throw Error(error.status(), concat("assigning to a tensor made of an array: ", error.text()));
  }
}

void require_writable(const TensorPtr& target) {
  const TensorFacts facts = facts_of(target);
  if (!facts.is_of_torch)
    fail(FPT_ERR_ARGUMENT,
         "an array of NumPy that a script returned cannot be an output: pass the array itself with torch_out");
  if (facts.has_graph && facts.is_view)
    fail(FPT_ERR_ARGUMENT,
         "a view of a tensor with a graph cannot be an output: assign to it with torch_call(\"Tensor.copy_\", ...)");
}

void note_written(const TensorPtr& target) noexcept {
  try {
    Engine& chosen = engine_of(*target);
    end_graph(target, chosen.flags_of(*target));
    chosen.written(*target);
  } catch (const std::exception&) {  // a gradient that is gone has nobody who would use it
  }
}

TensorPtr gradient_now(const TensorPtr& tensor) { return engine_of(*tensor).gradient_of(*tensor); }

TensorPtr present_gradient(const TensorPtr& tensor) {
  if (TensorPtr gradient = gradient_now(tensor)) return gradient;
  fail(FPT_ERR_ARGUMENT, "there is no gradient yet: call backward first, for a tensor with requires_grad");
}

TensorPtr reversed_view(const TensorPtr& tensor, bool same_layout) {
  std::vector<int64_t> axes(static_cast<std::size_t>(facts_of(tensor).rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return call_for_tensor("Tensor.permute", {{tensor}, {std::move(axes)}}, same_layout);
}

}  // namespace fpt
