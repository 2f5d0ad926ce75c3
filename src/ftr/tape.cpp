// SPDX-License-Identifier: MIT
#include "ftr/tape.hpp"

#include <algorithm>
#include <cmath>

namespace ftr {
namespace {

/// A slot of -1, which only optional items have, is none.
template <class Item>
c10::IValue tensors_of(const Argument& argument, const std::vector<c10::IValue>& slots) {
  c10::List<Item> list;
  list.reserve(argument.items.size());
  for (const int32_t slot : argument.items)
    list.push_back(slot < 0 ? Item() : Item(slots[static_cast<std::size_t>(slot)].toTensor()));
  return list;
}

template <class Number>
c10::IValue number_of(const Argument& argument, Number number) {
  return argument.is_wrapped ? c10::IValue(at::native::wrapped_scalar_tensor(number)) : c10::IValue(number);
}

c10::IValue sizes_of(const Argument& argument, int64_t batch) {
  c10::List<int64_t> list;
  list.reserve(argument.sizes.size());
  for (const Size& each : argument.sizes) list.push_back(each.of(batch));
  return list;
}

c10::IValue numbers_of(const Argument& argument, const std::vector<double>& numbers,
                       const std::vector<c10::IValue>& slots) {
  c10::impl::GenericList list(c10::NumberType::get());
  list.reserve(argument.formulas.size());
  for (const Formula& each : argument.formulas) list.push_back(each.value(numbers, slots));
  return list;
}

bool is_on_host(const c10::IValue& result) {
  const auto is_there = [](const at::Tensor& tensor) { return tensor.defined() && tensor.is_cpu(); };
  if (result.isTensor()) return is_there(result.toTensor());
  if (!result.isTensorList()) return false;
  const std::vector<at::Tensor> tensors = result.toTensorVector();
  return std::any_of(tensors.begin(), tensors.end(), is_there);
}

void keep(std::vector<c10::IValue>& slots, const std::vector<int32_t>& places, c10::IValue&& result) {
  if (places.size() == 1 && !result.isTensorList()) {
    if (places[0] >= 0) slots[static_cast<std::size_t>(places[0])] = std::move(result);
    return;
  }
  const auto tensors = result.toTensorVector();
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) slots[static_cast<std::size_t>(places[i])] = tensors.at(i);
}

}  // namespace

double Formula::value(const std::vector<double>& numbers, const std::vector<c10::IValue>& slots) const {
  c10::SmallVector<double, 8> stack;
  for (const auto& [code, index, constant] : steps) {
    if (code == Code::number) {
      stack.push_back(numbers[static_cast<std::size_t>(index)]);
    } else if (code == Code::slot) {
      stack.push_back(slots[static_cast<std::size_t>(index)].toScalar().toDouble());
    } else if (code == Code::constant) {
      stack.push_back(constant);
    } else if (code == Code::negate) {
      stack.back() = -stack.back();
    } else {
      const double right = stack.pop_back_val();
      double& left = stack.back();
      TORCH_CHECK(code != Code::divide || right != 0, "float division by zero");
      left = code == Code::add        ? left + right
             : code == Code::subtract ? left - right
             : code == Code::multiply ? left * right
             : code == Code::divide   ? left / right
                                      : std::pow(left, right);
    }
  }
  return stack.back();
}

bool Branch::holds(const std::vector<double>& numbers) const {
  const double one = left.value(numbers, {}), other = right.value(numbers, {});
  const bool found = code == Code::less ? one < other : code == Code::less_equal ? one <= other : one == other;
  return found == is_true;
}

bool Tape::draws() const {
  return std::any_of(operations_.begin(), operations_.end(), [](const Operation& each) {
    return each.handle && each.handle->hasTag(at::Tag::nondeterministic_seeded);
  });
}

bool Tape::calls_only_torch() const noexcept {
  return std::none_of(operations_.begin(), operations_.end(),
                      [](const Operation& each) { return each.own != nullptr; });
}

Tape::Tape(int32_t slots, std::vector<std::pair<int32_t, at::Tensor>> constants, std::vector<Operation> operations)
    : slots_(static_cast<std::size_t>(slots)), operations_(std::move(operations)) {
  for (auto& [slot, tensor] : constants) slots_[static_cast<std::size_t>(slot)] = std::move(tensor);
}

Frame Tape::frame() const {
  Frame made;
  made.slots = slots_;
  made.stack.reserve(32);
  return made;
}

void Tape::run(Frame& frame, const std::vector<double>& numbers, bool is_captured, int64_t batch) const {
  // The calls were recorded there. Casts of autocast are among them.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  auto& [slots, stack, position, refuses_host] = frame;
  for (position = 0; position < operations_.size(); ++position) {
    const Operation& operation = operations_[position];
    stack.clear();
    for (const Argument& argument : operation.arguments) switch (argument.kind) {
        case Argument::Kind::slot:
          stack.push_back(slots[static_cast<std::size_t>(argument.index)]);
          break;
        case Argument::Kind::last:
          stack.push_back(std::move(slots[static_cast<std::size_t>(argument.index)]));
          break;
        case Argument::Kind::list:
          stack.push_back(argument.may_be_none ? tensors_of<std::optional<at::Tensor>>(argument, slots)
                                               : tensors_of<at::Tensor>(argument, slots));
          break;
        case Argument::Kind::value:
          stack.push_back(argument.value);
          break;
        case Argument::Kind::waits:
          stack.push_back(is_captured ? c10::IValue(true) : argument.value);
          break;
        case Argument::Kind::number:
          stack.push_back(number_of(argument, argument.formulas[0].value(numbers, slots)));
          break;
        case Argument::Kind::numbers:
          stack.push_back(numbers_of(argument, numbers, slots));
          break;
        case Argument::Kind::size:
          stack.push_back(number_of(argument, argument.sizes[0].of(batch)));
          break;
        case Argument::Kind::real:
          stack.push_back(number_of(argument, static_cast<double>(argument.sizes[0].of(batch))));
          break;
        case Argument::Kind::fraction:
          stack.push_back(number_of(argument, argument.value.toDouble() / static_cast<double>(batch)));
          break;
        case Argument::Kind::sizes:
          stack.push_back(sizes_of(argument, batch));
          break;
      }
    if (operation.check) operation.check(operation.handle->schema(), stack);
    if (operation.handle)
      operation.handle->callBoxed(stack);
    else
      operation.own(stack);
    // a graph would copy from memory that is gone when it is launched
    TORCH_CHECK(!refuses_host || std::none_of(stack.begin(), stack.end(), is_on_host), "a result on the host");
    for (std::size_t i = 0; i < operation.results.size(); ++i) keep(slots, operation.results[i], std::move(stack[i]));
  }
  stack.clear();
}

void Tape::clear(Frame& frame) const {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].isNone()) frame.slots[i] = c10::IValue();
}

}  // namespace ftr
