// SPDX-License-Identifier: MIT
#include "plugin/recording/recording_state.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "plugin/pickle/plain_values.hpp"
#include "plugin/recording/pieces.hpp"
#include "plugin/tensors.hpp"

namespace fpt::direct {
namespace {

at::Tensor state_of_generator() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator(const at::Tensor& state, const std::string& file) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  try {
    generator.set_state(state.contiguous());
  } catch (const c10::Error& error) {
    fail(FPT_ERR_FORMAT, file,
         " has a state of the random generator that torch refuses: ", error.what_without_backtrace());
  }
}

/// Moves tensors to a device, each storage once, so that those that share memory go on to do so.
class Mover {
 public:
  explicit Mover(at::Device device) : device_(device) {}

  at::Tensor moved(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.storage();
    at::Tensor& bytes = known_[storage.unsafeGetStorageImpl()];
    if (!bytes.defined()) {
      at::Tensor whole = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(tensor.device()));
      whole.set_(storage, 0, {static_cast<int64_t>(storage.nbytes())}, {1});
      bytes = whole.to(device_);
    }
    at::Tensor made = at::empty({0}, tensor.options().device(device_));
    return made.set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }

  // NOLINTNEXTLINE(misc-no-recursion): the reader of files limits the depth
  c10::IValue moved(const c10::IValue& value) {
    if (value.isTensor()) return moved(value.toTensor());
    if (value.isTuple()) {
      std::vector<c10::IValue> items;
      for (const c10::IValue& each : value.toTupleRef().elements()) items.push_back(moved(each));
      return c10::ivalue::Tuple::create(std::move(items));
    }
    if (value.isList()) {
      c10::impl::GenericList list(c10::AnyType::get());
      for (const c10::IValue& each : value.toListRef()) list.push_back(moved(each));
      return list;
    }
    if (value.isGenericDict()) {
      c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
      for (const auto& entry : value.toGenericDict()) dict.insert(entry.key(), moved(entry.value()));
      return dict;
    }
    return value;
  }

 private:
  at::Device device_;
  std::unordered_map<c10::StorageImpl*, at::Tensor> known_;
};

std::string shown(const at::Tensor& tensor) {
  return concat(dtype_name(dtype_of(tensor.scalar_type())), " ", shape_text(array_of_tensor(tensor, true)));
}

void require_resumable(const ArchiveContent& content, const std::string& path) {
  if (content.holes.isNone() || !content.generator.defined())
    fail(FPT_ERR_FORMAT, path, " was written by an earlier version, whose checkpoints only a script can go on from: ",
         "restore the script from it, and write it again");
}

}  // namespace

RecordingState::RecordingState(ArchiveContent content, const std::string& file, const std::optional<at::Device>& device)
    : file_(file), device_(device), content_(std::move(content)) {
  if (!content_.is_recording)
    fail(FPT_ERR_FORMAT, file, " is a checkpoint, which holds no functions: restore a model from it");
  require_resumable(content_, file);
  if (device) {
    Mover mover(*device);
    for (auto& [name, tensor] : content_.arrays) tensor = mover.moved(tensor);
    content_.recording = mover.moved(content_.recording);
  }
  for (auto& [name, tensor] : content_.arrays) arrays_[name] = std::move(tensor);
  content_.arrays.clear();
  take_numbers(content_);
}

void RecordingState::start_generator() const { set_generator(content_.generator, file_); }

void RecordingState::take_numbers(const ArchiveContent& content) {
  names_.clear();
  numbers_.clear();
  for (const auto& [name, value] : content.numbers) {
    names_.push_back(name);
    numbers_.push_back(value);
  }
}

std::size_t RecordingState::place_of(const std::string& name) const {
  std::vector<std::size_t> fitting;
  std::string there, meant;
  const std::string ending = "." + name;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const std::string& known = names_[i];
    if (known == name) return i;
    there += (there.empty() ? "" : ", ") + known;
    if (known.size() <= ending.size() || known.compare(known.size() - ending.size(), ending.size(), ending) != 0)
      continue;
    meant += (meant.empty() ? "" : ", ") + known;
    fitting.push_back(i);
  }
  if (fitting.size() == 1) return fitting[0];
  if (!fitting.empty()) fail(FPT_ERR_ARGUMENT, "numbers of optimizers in ", file_, ": \"", name, "\" may be ", meant);
  fail(FPT_ERR_ARGUMENT, "numbers of optimizers in ", file_, ": there is no \"", name, "\"; there are ",
       there.empty() ? "none" : there);
}

void RecordingState::set_number(const std::string& name, double value) {
  const std::size_t place = place_of(name);
  if (value == 0 || !std::isfinite(value))
    fail(FPT_ERR_ARGUMENT, names_[place], " of ", file_, " cannot become ", value, ": it was recorded not zero");
  numbers_[place] = value;
}

void RecordingState::set_array(const std::string& name, at::Tensor tensor) {
  if (tensor.defined())
    arrays_[name] = std::move(tensor);
  else
    arrays_.erase(name);
}

ArchiveContent RecordingState::content(bool with_tapes, std::optional<int64_t> step) const {
  ArchiveContent made;
  for (const auto& [name, tensor] : arrays_) made.arrays.emplace_back(name, tensor);
  for (std::size_t i = 0; i < names_.size(); ++i) made.numbers.emplace_back(names_[i], numbers_[i]);
  made.generator = state_of_generator();
  HoleValues values = HoleValues::of_this_process();
  values.numbers = made.numbers;
  values.generator = made.generator;
  values.step = step;
  FilledText state = filled_with_holes(opened({content_.state, content_.holes}), values);
  made.state = std::move(state.text);
  made.holes = std::move(state.holes);
  made.description = filled(entry_in(content_.recording, "description"), values);
  made.is_recording = with_tapes;
  if (with_tapes) made.recording = content_.recording;
  return made;
}

void RecordingState::restore(ArchiveContent content, const std::string& path,
                             const std::map<std::string, at::Tensor>& arrays, const std::set<std::size_t>& numbers) {
  require_resumable(content, path);
  const auto refuse = [&](const std::string& why) {
    fail(FPT_ERR_FORMAT, path, " does not fit the state of ", file_, ": ", why);
  };
  std::map<std::string, at::Tensor> taken;
  for (auto& [name, tensor] : content.arrays) taken[name] = tensor;
  for (const auto& [name, ours] : arrays) {
    const auto found = taken.find(name);
    if (found == taken.end()) refuse("the file has no " + name);
    const at::Tensor& theirs = found->second;
    if (theirs.sizes() != ours.sizes() || theirs.scalar_type() != ours.scalar_type())
      refuse(concat(name, " is ", shown(theirs), " in the file and ", shown(ours), " here"));
  }
  const std::map<std::string, double> values(content.numbers.begin(), content.numbers.end());
  for (const std::size_t place : numbers)
    if (values.count(names_[place]) == 0) refuse("the file has no number " + names_[place]);
  set_generator(content.generator, path);
  const at::NoGradGuard no_gradients;
  for (auto& [name, tensor] : taken) {
    const auto ours = arrays.find(name);
    if (ours != arrays.end())
      tensor = at::Tensor(ours->second).copy_(tensor);
    else if (device_)
      tensor = tensor.to(*device_);
  }
  arrays_ = std::move(taken);
  for (const auto& [name, value] : values) {
    const auto known = std::find(names_.begin(), names_.end(), name);
    if (known != names_.end()) {
      numbers_[static_cast<std::size_t>(known - names_.begin())] = value;
    } else {
      names_.push_back(name);  // tapes know numbers by their places
      numbers_.push_back(value);
    }
  }
  content_.state = std::move(content.state);
  content_.holes = std::move(content.holes);
}

}  // namespace fpt::direct
