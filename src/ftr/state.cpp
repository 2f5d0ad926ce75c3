// SPDX-License-Identifier: MIT
#include "ftr/state.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ftr/refusal.hpp"
#include "ftr/stored_tensor.hpp"

namespace ftr {
namespace {

void set_generator(const at::Tensor& state, const std::string& file) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  try {
    generator.set_state(state.contiguous());
  } catch (const c10::Error& error) {
    fail(Why::format, file,
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

void require_resumable(const Content& content, const std::string& path) {
  if (content.holes.isNone() || !content.generator.defined())
    fail(Why::format, path, " was written by an earlier version, whose checkpoints only a script can go on from: ",
         "restore the script from it, and write it again");
}

}  // namespace

State::State(Content content, const std::string& file, const std::optional<at::Device>& device)
    : file_(file), device_(device), content_(std::move(content)) {
  if (!content_.is_recording)
    fail(Why::format, file, " is a checkpoint, which holds no functions: restore a model from it");
  require_resumable(content_, file);
  if (device) {
    Mover mover(*device);
    for (auto& [name, tensor] : content_.arrays) tensor = mover.moved(tensor);
    content_.recording = mover.moved(content_.recording);
  }
  for (auto& [name, tensor] : content_.arrays) arrays_[name] = std::move(tensor);
  content_.arrays.clear();
  for (const auto& [name, value] : content_.numbers) {
    names_.push_back(name);
    numbers_.push_back(value);
  }
}

void State::start_generator() const { set_generator(content_.generator, file_); }

std::size_t State::place_of(const std::string& name) const {
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
  if (!fitting.empty()) fail(Why::argument, "numbers of optimizers in ", file_, ": \"", name, "\" may be ", meant);
  fail(Why::argument, "numbers of optimizers in ", file_, ": there is no \"", name, "\"; there are ",
       there.empty() ? "none" : there);
}

void State::set_number(const std::string& name, double value) {
  const std::size_t place = place_of(name);
  if (value == 0 || !std::isfinite(value))
    fail(Why::argument, names_[place], " of ", file_, " cannot become ", value, ": it was recorded not zero");
  numbers_[place] = value;
}

void State::set_array(const std::string& name, at::Tensor tensor) {
  if (tensor.defined())
    arrays_[name] = std::move(tensor);
  else
    arrays_.erase(name);
}

void State::restore(Content content, const std::string& path, const std::map<std::string, at::Tensor>& arrays,
                    const std::set<std::size_t>& numbers) {
  require_resumable(content, path);
  const auto refuse = [&](const std::string& why) {
    fail(Why::format, path, " does not fit the state of ", file_, ": ", why);
  };
  std::map<std::string, at::Tensor> taken;
  for (auto& [name, tensor] : content.arrays) taken[name] = tensor;
  for (const auto& [name, ours] : arrays) {
    const auto found = taken.find(name);
    if (found == taken.end()) refuse("the file has no " + name);
    const at::Tensor& theirs = found->second;
    if (theirs.sizes() != ours.sizes() || theirs.scalar_type() != ours.scalar_type())
      refuse(concat(name, " is ", described(theirs), " in the file and ", described(ours), " here"));
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

}  // namespace ftr
