// SPDX-License-Identifier: MIT
/// What the extension for Python asks of a saved recording, and how it finds it.
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "calls/guard.hpp"
#include "plugin/failure.hpp"
#include "plugin/pickle/plain_values.hpp"
#include "plugin/recording/recording_model.hpp"

namespace fpt::direct {
namespace {

#ifdef FPT_CUDA_GRAPHS
constexpr auto capture = &DeviceGraphs::capture;
#else
constexpr auto capture = nullptr;
#endif

constexpr recording::SavedModules modules = {
    FPT_VERSION,
    TORCH_VERSION,
    [](const std::function<void()>& body) -> int32_t { return guard([&] { translated(body); }); },
    [](int32_t status) { return status_name(status); },
    [] { return last_error().c_str(); },
    [](const std::string& file, const std::string& device, recording::Average average,
       bool starts_generator) -> std::unique_ptr<recording::SavedModule> {
      Settings settings;
      settings.file = settings.name = file;
      if (!device.empty()) settings.place = at::Device(device);
      return std::make_unique<RecordingModel>(std::move(settings), std::move(average), starts_generator);
    },
    &recording::DeviceTurns::of,
    capture};

}  // namespace

std::vector<recording::SavedFunction> RecordingModel::functions() const {
  const std::shared_lock lock(mutex_);
  std::vector<recording::SavedFunction> all;
  for (const auto& [name, function] : loaded_->functions)
    for (const auto& recorded : function.recorded)
      all.push_back(
          {name, recorded->tape.described(), recorded->tape.operators, !recorded->tape.written_inputs.empty()});
  return all;
}

c10::IValue RecordingModel::run(const std::string& name, const recording::SavedArguments& given) {
  c10::IValue result;
  with(name, [&](RecordedFunction& function) {
    RecordedCall call(settings_, function, given);
    call.run(loaded_->state, *loaded_->settings);
    result = call.result();
  });
  return result;
}

std::vector<std::size_t> RecordingModel::written(const std::string& name, const recording::SavedArguments& given) {
  std::vector<std::size_t> places;
  with(name,
       [&](RecordedFunction& function) { places = RecordedCall(settings_, function, given).written(loaded_->state); });
  return places;
}

std::vector<std::pair<std::string, std::string>> RecordingModel::parameters() const {
  const std::shared_lock lock(mutex_);
  return loaded_->parameters;
}

std::map<std::string, at::Tensor> RecordingModel::arrays() const {
  const std::shared_lock lock(mutex_);
  return loaded_->state.arrays();
}

std::vector<std::pair<std::string, double>> RecordingModel::numbers() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t i = 0; i < loaded_->state.names().size(); ++i)
    all.emplace_back(loaded_->state.names()[i], loaded_->state.numbers()[i]);
  return all;
}

double RecordingModel::number(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  return loaded_->state.number(name);
}

void RecordingModel::set_number(const std::string& name, double value) {
  const std::unique_lock lock(mutex_);
  loaded_->state.set_number(name, value);
}

std::string RecordingModel::told(const char* name) const {
  const std::shared_lock lock(mutex_);
  return text_in(entry_in(loaded_->state.recording(), name), name);
}

recording::SavedContent RecordingModel::read(const std::string& path) const {
  return std::make_shared<ArchiveContent>(read_archive(path));
}

void RecordingModel::go_on_from(const recording::SavedContent& content, const std::string& path) {
  const std::unique_lock lock(mutex_);
  const auto& read = *std::static_pointer_cast<ArchiveContent>(content);
  loaded_->state.restore(read, path, loaded_->arrays, loaded_->numbers);
}

}  // namespace fpt::direct

extern "C" FPT_API const fpt::recording::SavedModules* fpt_saved_modules_get() { return &fpt::direct::modules; }
