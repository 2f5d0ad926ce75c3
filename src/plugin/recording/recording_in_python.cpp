// SPDX-License-Identifier: MIT
/// What the extension for Python asks of a saved recording, and how it finds it.
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "calls/guard.hpp"
#include "ftr/plain_values.hpp"
#include "plugin/failure.hpp"
#include "plugin/recording/archive_file.hpp"
#include "plugin/recording/device_graph.hpp"
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

/// Arguments of Python may have any type, be written, and get results in several levels.
ftr::Call chosen_call(ftr::Function& function, const recording::SavedArguments& given, const ftr::State& state) {
  ftr::Call call(function);
  for (const recording::SavedArgument& each : given) call.add({each.value, each.name});
  choose_recording(call, state);
  return call;
}

}  // namespace

std::vector<recording::SavedFunction> RecordingModel::functions() const {
  const std::shared_lock lock(mutex_);
  std::vector<recording::SavedFunction> all;
  for (const auto& [name, function] : loaded_->program.functions())
    for (const auto& recording : function.recordings) {
      const ftr::SavedTape& tape = recording->tape;
      all.push_back({name, tape.described(), tape.operators, !tape.written_inputs.empty()});
    }
  return all;
}

c10::IValue RecordingModel::run(const std::string& name, const recording::SavedArguments& given) {
  c10::IValue result;
  with(name, [&](RecordedFunction& function) {
    ftr::Call call = chosen_call(function.of, given, loaded_->program.state());
    call.run(loaded_->program.state(), loaded_->program.settings());
    result = call.result();
  });
  return result;
}

std::vector<std::size_t> RecordingModel::written(const std::string& name, const recording::SavedArguments& given) {
  std::vector<std::size_t> places;
  with(name, [&](RecordedFunction& function) {
    places = chosen_call(function.of, given, loaded_->program.state()).written();
  });
  return places;
}

std::vector<std::pair<std::string, std::string>> RecordingModel::parameters() const {
  const std::shared_lock lock(mutex_);
  return loaded_->program.parameters();
}

std::map<std::string, at::Tensor> RecordingModel::arrays() const {
  const std::shared_lock lock(mutex_);
  return loaded_->program.state().arrays();
}

std::vector<std::pair<std::string, double>> RecordingModel::numbers() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t i = 0; i < loaded_->program.state().names().size(); ++i)
    all.emplace_back(loaded_->program.state().names()[i], loaded_->program.state().numbers()[i]);
  return all;
}

double RecordingModel::number(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  return loaded_->program.state().number(name);
}

void RecordingModel::set_number(const std::string& name, double value) {
  const std::unique_lock lock(mutex_);
  loaded_->program.state().set_number(name, value);
}

std::string RecordingModel::told(const char* name) const {
  const std::shared_lock lock(mutex_);
  return ftr::text_in(ftr::entry_in(loaded_->program.state().content().recording, name), name);
}

recording::SavedContent RecordingModel::read(const std::string& path) const {
  return std::make_shared<ftr::Content>(read_archive(path));
}

void RecordingModel::go_on_from(const recording::SavedContent& content, const std::string& path) {
  const std::unique_lock lock(mutex_);
  const auto& read = *std::static_pointer_cast<ftr::Content>(content);
  loaded_->program.restore(read, path);
}

}  // namespace fpt::direct

extern "C" FPT_API const fpt::recording::SavedModules* fpt_saved_modules_get() { return &fpt::direct::modules; }
