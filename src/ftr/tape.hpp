// SPDX-License-Identifier: MIT
/// A recorded function: calls of operators with what they are given, run one after the other below autograd.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ftr/torch.hpp"

namespace ftr {

/// What Python computes from numbers, in the order of a stack. `recording/traced_numbers.py` makes them.
struct Formula {
  enum class Code : uint8_t { number, slot, constant, add, subtract, multiply, divide, power, negate };
  struct Step {
    Code code;
    int32_t index;  ///< of a number that every run is given, or of a slot with a number that the run has read
    double constant;
  };
  std::vector<Step> steps;

  /// Bit for bit that of Python. Throws where that divides by zero.
  double value(const std::vector<double>& numbers, const std::vector<c10::IValue>& slots) const;
};

/// A comparison that Python made on its way through a step of an optimizer.
struct Branch {
  enum class Code : uint8_t { less, less_equal, equal };
  Code code;
  Formula left, right;
  bool is_true;

  bool holds(const std::vector<double>& numbers) const;
};

/// A size that follows from that of the batch.
struct Size {
  int64_t factor, offset;
  int64_t of(int64_t batch) const noexcept { return factor * batch + offset; }
};

/// What a call is given, or a list of that.
struct Argument {
  enum class Kind : uint8_t {
    slot,      ///< the tensor in slot `index`
    last,      ///< the same, and nobody needs it afterwards
    list,      ///< the tensors in the slots `items`; -1 for None
    value,     ///< `value`
    waits,     ///< `value`, whether a copy does not wait for its end; in a graph none may
    number,    ///< the only one of `formulas`
    numbers,   ///< a list of all of them
    size,      ///< the only one of `sizes`, an integer
    real,      ///< the same as a real number
    fraction,  ///< `value` over the size of the batch
    sizes,     ///< a list of all of them
  };
  Kind kind = Kind::value;
  bool is_wrapped = false;   ///< a number where the operator wants a tensor
  bool may_be_none = false;  ///< items of a list of optional tensors
  int32_t index = -1;
  std::vector<int32_t> items;
  std::vector<Formula> formulas;
  std::vector<Size> sizes;
  c10::IValue value;
};

/// Looks at the arguments of a call, and throws where a kernel must not get them.
using Check = void (*)(const c10::FunctionSchema& schema, const c10::Stack& stack);

/// One call. A result goes into a slot, a list of tensors into several; -1: it is not needed.
struct Operation {
  std::optional<c10::OperatorHandle> handle;
  std::function<void(c10::Stack&)> own;  ///< in place of a handle: arguments on the stack become results
  std::vector<Argument> arguments;
  std::vector<std::vector<int32_t>> results;
  Check check = nullptr;
};

/// Memory of one run: the slots hold constants all the time, and other tensors as long as a call needs them.
struct Frame {
  std::vector<c10::IValue> slots;
  c10::Stack stack;
  std::size_t position = 0;   ///< call that is made, for failures
  bool refuses_host = false;  ///< a call that makes a tensor on the host fails
};

/// What code of a compiler is given in place of the operators of a tape, and what it computes.
struct CodeParts {
  std::vector<int32_t> inputs;     ///< slots of a frame
  std::vector<at::Tensor> memory;  ///< what is there before a call, behind the inputs
  std::vector<int32_t> results;    ///< slots that it fills
  bool writes_memory = false, writes_inputs = false;
};

class Tape {
 public:
  Tape() = default;
  Tape(int32_t slots, std::vector<std::pair<int32_t, at::Tensor>> constants, std::vector<Operation> operations);

  Frame frame() const;
  /// True for a slot that holds the same tensor in every run.
  bool is_constant(int32_t slot) const { return slot >= 0 && !slots_[static_cast<std::size_t>(slot)].isNone(); }
  /// A call draws random numbers.
  bool draws() const;
  /// No call is one of this library.
  bool calls_only_torch() const noexcept;
  /// Run all calls on a frame whose inputs are set. Throws what an operator throws; the frame is of no use then.
  /// @param batch  size of the batch, for a tape whose sizes follow from it
  void run(Frame& frame, const std::vector<double>& numbers, bool is_captured, int64_t batch = 0) const;
  /// Let all tensors of a run go; constants stay.
  void clear(Frame& frame) const;

 private:
  std::vector<c10::IValue> slots_;
  std::vector<Operation> operations_;
};

}  // namespace ftr
