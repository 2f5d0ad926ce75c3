// SPDX-License-Identifier: MIT
#include "plugin/recording/device_graph.hpp"

#ifdef FPT_CUDA_GRAPHS

#include <ATen/Context.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <utility>

#include "plugin/recording/device_owner.hpp"

namespace fpt::direct {
namespace {

constexpr int most_captures = 8;
constexpr std::size_t most_graphs = 8;
constexpr std::size_t most_places = 4;
// libraries that torch calls prepare themselves in their first calls, which cannot be captured
constexpr int calls_before = 2;
// cuBLAS looks that far at how addresses are aligned, and memory of torch is aligned so
constexpr std::uintptr_t alignment = 256;

/// Inputs by their slots.
using InputsInSlots = std::vector<std::pair<int32_t, at::Tensor>>;
using Addresses = std::vector<std::uintptr_t>;

/// Settings of kernels that a capture makes part of a graph.
using KernelSettings = std::tuple<bool, bool, at::Float32MatmulPrecision>;

KernelSettings kernel_settings() {
  const at::Context& torch = at::globalContext();
  return {torch.deterministicAlgorithms(), torch.allowTF32CuDNN(), torch.float32MatmulPrecision()};
}

const at::Tensor& in_slot(const ftr::Frame& frame, int32_t slot) {
  return frame.slots[static_cast<std::size_t>(slot)].toTensor();
}

/// A tensor with elements that share memory can be no buffer.
bool has_memory_of_its_own(const at::Tensor& tensor) {
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    if (tensor.size(axis) > 1 && tensor.stride(axis) == 0) return false;
  return true;
}

/// One GPU has everything, and a run is calls of torch that change nothing but what the file keeps.
bool can_be_captured(const ftr::SavedTape& tape, const InputsInSlots& inputs) {
  if (inputs.empty() || !tape.tape.calls_only_torch() || !tape.written_inputs.empty() || !tape.before.empty())
    return false;
  const at::Device device = inputs.front().second.device();
  const auto is_there = [device](const at::Tensor& tensor) { return tensor.device() == device; };
  return device.is_cuda() && DeviceOwner::is_possible() &&
         std::all_of(tape.tensors.begin(), tape.tensors.end(), is_there) &&
         std::all_of(inputs.begin(), inputs.end(),
                     [&](const auto& input) { return is_there(input.second) && has_memory_of_its_own(input.second); });
}

/// Who comes while another thread has the turn does without a graph, and does not wait.
struct Turn {
  explicit Turn(recording::DeviceTurns& turns) : turns(turns), is_mine(turns.take()) {}
  ~Turn() {
    if (is_mine) turns.give_back();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  recording::DeviceTurns& turns;
  const bool is_mine;
};

Addresses addresses_of(const InputsInSlots& inputs) {
  Addresses found;
  for (const auto& input : inputs) found.push_back(reinterpret_cast<std::uintptr_t>(input.second.const_data_ptr()));
  return found;
}

/// A graph, what it is valid for, and the memory that it works on.
struct Captured {
  std::unique_ptr<OwnedGraph> graph;
  std::vector<double> numbers;
  KernelSettings settings;
  InputsInSlots buffers;  // none where inputs are read in their places
  std::vector<at::Tensor> results, gradients;
};

/// Graphs for one size of the batch.
struct OfSize {
  int calls = 0;
  Addresses last;
  std::map<Addresses, std::unique_ptr<Captured>> in_place;
  std::unique_ptr<Captured> with_buffers;
};

/// Memory for gradients that outlives a run; a gradient may have several names. Empty where one has none yet.
std::optional<std::vector<at::Tensor>> homes_of_gradients(const ftr::SavedTape& tape,
                                                          const std::map<std::string, at::Tensor>& arrays) {
  std::map<int32_t, at::Tensor> homes;
  std::vector<at::Tensor> found;
  for (const auto& [name, slot] : tape.gradients) {
    const auto array = arrays.find(name);
    if (slot >= 0 && (array == arrays.end() || !array->second.defined())) return std::nullopt;
    at::Tensor& home = homes[slot];
    if (slot >= 0 && !home.defined()) home = at::empty_like(array->second);
    found.push_back(home);
  }
  return found;
}

/// Operators run on the memory of a graph, which is what is captured.
void run_to_capture(const ftr::SavedTape& tape, Captured& made, const InputsInSlots& inputs, int64_t batch) {
  ftr::Frame frame = tape.tape.frame();
  frame.refuses_host = true;
  for (const auto& [slot, input] : inputs) frame.slots[static_cast<std::size_t>(slot)] = input;
  tape.tape.run(frame, made.numbers, true, batch);
  for (const int32_t slot : tape.results) made.results.push_back(in_slot(frame, slot));
  std::vector<at::Tensor> computed, homes;
  for (std::size_t i = 0; i < tape.gradients.size(); ++i)
    if (made.gradients[i].defined()) {
      computed.push_back(in_slot(frame, tape.gradients[i].second));
      homes.push_back(made.gradients[i]);
    }
  if (!homes.empty()) at::_foreach_copy_(homes, computed);
}

}  // namespace

class DeviceGraphs::Graphs {
 public:
  std::optional<ftr::Outcome> run(const ftr::SavedTape& tape, const ftr::Frame& frame,
                                  const std::vector<double>& numbers, int64_t batch,
                                  const std::map<std::string, at::Tensor>& arrays) {
    const std::unique_lock<std::mutex> alone(mutex_, std::try_to_lock);
    if (!alone.owns_lock() || captures_ > most_captures) return std::nullopt;
    inputs_.clear();
    for (const ftr::SavedInput& input : tape.inputs)
      if (input.is_tensor) inputs_.emplace_back(input.slot, in_slot(frame, input.slot));
    std::optional<ftr::Outcome> made;
    if (can_be_captured(tape, inputs_)) {
      const c10::Device gpu = inputs_.front().second.device();
      const c10::DeviceGuard inside(gpu);
      DeviceOwner& owner = DeviceOwner::of(gpu);
      if (const Turn turn(owner.turns()); turn.is_mine)
        if (Captured* captured = find(owner, tape, numbers, batch, arrays)) made = launch(owner.turns(), *captured);
    }
    inputs_.clear();
    return made;
  }

 private:
  ftr::Outcome launch(recording::DeviceTurns& turns, Captured& captured) {
    turns.begin();
    for (std::size_t i = 0; i < captured.buffers.size(); ++i) captured.buffers[i].second.copy_(inputs_[i].second);
    captured.graph->replay();
    ftr::Outcome made{{}, captured.gradients};
    for (const at::Tensor& each : captured.results) made.results.push_back(each.clone());
    turns.end();
    return made;
  }

  /// Null in the first calls of a size, and where there can be none. Where addresses come again, the graph reads the
  /// inputs in their places. One with buffers serves all other addresses.
  Captured* find(DeviceOwner& owner, const ftr::SavedTape& tape, const std::vector<double>& numbers, int64_t batch,
                 const std::map<std::string, at::Tensor>& arrays) {
    if (graphs_.size() == most_graphs && graphs_.count(batch) == 0) return nullptr;
    OfSize& of_size = graphs_[batch];
    const Addresses addresses = addresses_of(inputs_);
    const bool comes_again = addresses == std::exchange(of_size.last, addresses);
    const bool is_in_place =
        of_size.in_place.count(addresses) != 0 || (comes_again && of_size.in_place.size() < most_places);
    const bool are_aligned = std::all_of(addresses.begin(), addresses.end(),
                                         [](std::uintptr_t address) { return address % alignment == 0; });
    std::unique_ptr<Captured>& captured = is_in_place ? of_size.in_place[addresses] : of_size.with_buffers;
    const bool is_valid = captured && captured->graph->can_be_replayed();
    if (is_valid && captured->numbers == numbers && captured->settings == kernel_settings()) return captured.get();
    if (++of_size.calls <= calls_before) return nullptr;
    if (!is_in_place && !are_aligned) return nullptr;  // products may be computed another way in buffers
    if (is_valid && ++captures_ > most_captures) return graphs_.clear(), nullptr;
    captured.reset();
    auto homes = homes_of_gradients(tape, arrays);
    if (!homes) return nullptr;
    auto made = std::make_unique<Captured>();
    made->numbers = numbers;
    made->settings = kernel_settings();
    made->gradients = std::move(*homes);
    if (!is_in_place)
      for (const auto& [slot, input] : inputs_)
        made->buffers.emplace_back(slot, at::empty_strided(input.sizes(), input.strides(), input.options()));
    const InputsInSlots& read = is_in_place ? inputs_ : made->buffers;
    try {
      made->graph = owner.capture(tape.tape.draws(), [&] { run_to_capture(tape, *made, read, batch); });
    } catch (const c10::Error&) {
      captures_ = most_captures + 1;  // an operator asks the device for a number, say: one by one from now on
      return nullptr;
    }
    captured = std::move(made);
    return captured.get();
  }

  std::mutex mutex_;
  std::map<int64_t, OfSize> graphs_;  // by the batch
  InputsInSlots inputs_;              // of the call that runs
  int captures_ = 0;
};

DeviceGraphs::DeviceGraphs() : graphs_(std::make_unique<Graphs>()) {}

std::optional<ftr::Outcome> DeviceGraphs::run(const ftr::SavedTape& tape, const ftr::Frame& frame,
                                              const std::vector<double>& numbers, int64_t batch,
                                              const std::map<std::string, at::Tensor>& arrays) {
  return graphs_->run(tape, frame, numbers, batch, arrays);
}

std::unique_ptr<recording::DeviceGraph> DeviceGraphs::capture(c10::DeviceIndex gpu, bool draws,
                                                              const std::function<void()>& body) {
  TORCH_CHECK(DeviceOwner::is_possible(), "the functions of torch for CUDA are not in this process");
  return DeviceOwner::of(c10::Device(c10::DeviceType::CUDA, gpu)).capture(draws, body);
}

#else

namespace fpt::direct {

class DeviceGraphs::Graphs {};

DeviceGraphs::DeviceGraphs() = default;

std::optional<ftr::Outcome> DeviceGraphs::run(const ftr::SavedTape&, const ftr::Frame&, const std::vector<double>&,
                                              int64_t, const std::map<std::string, at::Tensor>&) {
  return std::nullopt;
}

#endif

DeviceGraphs::~DeviceGraphs() = default;

}  // namespace fpt::direct
