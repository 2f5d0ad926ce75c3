// SPDX-License-Identifier: MIT
#include "plugin/recording/recording_model.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/json_field.hpp"
#include "ftr/holes.hpp"
#include "ftr/plain_values.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/failure.hpp"
#include "plugin/file_owner.hpp"
#include "plugin/package/package_origin.hpp"
#include "plugin/parts.hpp"
#include "plugin/recording/archive_file.hpp"
#include "plugin/recording/checkpoint_writer.hpp"
#include "plugin/recording/pieces.hpp"
#include "plugin/recording/recording_runner.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

constexpr const char* set_function = "ftn_pytorch_set";
constexpr const char* get_function = "ftn_pytorch_get";
constexpr const char* parameters_function = "ftn_pytorch_parameters";
constexpr double seconds_for_ranks = 1800;  // as TIMEOUT of ranks/communicator.py

/// The step that a description tells; -1 for a file without.
int64_t step_in(std::string_view description) {
  const std::string_view told = json_field(description, "step");
  int64_t step = -1;
  std::from_chars(told.data(), told.data() + told.size(), step);
  return step;
}

/// A dataclass is a named tuple in a file. What is left of it without the fields that are None has names, and no order.
c10::IValue without_empty(c10::IValue result) {
  if (!result.isTuple() || !result.toTupleRef().type()->schema()) return result;
  const auto& fields = result.toTupleRef().elements();
  if (std::none_of(fields.begin(), fields.end(), [](const c10::IValue& each) { return each.isNone(); })) return result;
  const auto& names = result.toTupleRef().type()->schema()->arguments();
  c10::impl::GenericDict entries(c10::StringType::get(), c10::AnyType::get());
  for (std::size_t i = 0; i < fields.size(); ++i) entries.insert(names[i].name(), fields[i]);
  return entries;
}

at::Tensor state_of_generator() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

/// Machine code goes by its own name only.
bool carries_code(const std::string& file) { return std::filesystem::path(file).extension() == ".pt2"; }

/// The present state as a file holds it. @param step  none for a file that is no checkpoint of a folder
ftr::Content content_of(const ftr::State& state, bool with_tapes, std::optional<int64_t> step, Rank own) {
  ftr::Content made;
  for (const auto& [name, tensor] : state.arrays()) made.arrays.emplace_back(name, tensor);
  for (std::size_t i = 0; i < state.names().size(); ++i)
    made.numbers.emplace_back(state.names()[i], state.numbers()[i]);
  made.generator = state_of_generator();
  HoleValues values = HoleValues::of_this_process(own);
  values.numbers = made.numbers;
  values.generator = made.generator;
  values.step = step;
  const ftr::Content& read = state.content();
  ftr::FilledText text = filled_with_holes(ftr::pieces_of({read.state, read.holes}), values);
  made.state = std::move(text.text);
  made.holes = std::move(text.holes);
  made.description = filled(ftr::entry_in(read.recording, "description"), values);
  made.is_recording = with_tapes;
  if (with_tapes) made.recording = read.recording;
  return made;
}

std::string text_of_argument(Inputs inputs, int32_t index, const char* function) {
  if (index >= inputs.count || inputs.args[index].dtype != FPT_TEXT)
    fail(FPT_ERR_SIGNATURE, function, " takes the name of a number of an optimizer");
  return value_of(inputs.args[index]).toStringRef();
}

}  // namespace

RecordingModel::RecordingModel(Settings settings, recording::Average average, bool starts_generator)
    : settings_(std::move(settings)),
      sum_(settings_.communicator ? std::make_shared<MpiSum>(*settings_.communicator, seconds_for_ranks) : nullptr),
      average_(std::move(average)),
      starts_generator_(starts_generator),
      loaded_(read()) {}

std::unique_ptr<recording::Code> RecordingModel::code_of(const ftr::SavedCode& saved) const {
  const PackageOrigin origin = origin_of_package(settings_.file, settings_.place, saved.model);
  return std::make_unique<recording::Code>(load_code(settings_.file, origin), saved.parts);
}

/// Graphs where everything is on a GPU, and the code that a file brings.
void RecordingModel::add_runners(ftr::Program& program) const {
  const bool has_graphs = settings_.place && settings_.place->is_cuda();
  for (auto& [name, function] : program.functions())
    for (const auto& recording : function.recordings) {
      const std::optional<ftr::SavedCode>& code = recording->tape.code;
      std::unique_ptr<recording::Code> loaded;
      if (code && carries_code(settings_.file)) loaded = code_of(*code);
      if (has_graphs || loaded) recording->runner = std::make_unique<RecordingRunner>(has_graphs, std::move(loaded));
    }
}

std::unique_ptr<RecordingModel::Loaded> RecordingModel::read() const {
  std::map<std::string, std::shared_ptr<OverRanks>> over_ranks;
  ftr::Options options{settings_.place, /*starts_generator=*/false, {}};
  options.average_of = [&](const std::string& name) -> ftr::Average {
    const auto by_mpi = std::make_shared<OverRanks>(sum_, settings_.label(name));
    over_ranks[name] = by_mpi;
    if (average_) return average_;
    return [by_mpi](c10::Stack& stack) { by_mpi->average(stack); };
  };
  auto made = std::make_unique<Loaded>(Loaded{ftr::Program(settings_.file, options), {}});
  for (auto& [name, function] : made->program.functions()) {
    function.label = settings_.label(name);
    made->functions.try_emplace(name, function, over_ranks.at(name));
  }
  try {
    add_runners(made->program);
  } catch (const Error& error) {
    if (error.status() != FPT_ERR_FORMAT) throw;
    fail(FPT_ERR_FORMAT, ftr::unrunnable(settings_.file, error.text()));
  }
  if (starts_generator_) made->program.state().start_generator();
  return made;
}

Rank RecordingModel::own_rank() const { return sum_ ? Rank{sum_->rank(), sum_->size()} : rank_in_training(); }

void RecordingModel::reload() {
  auto made = read();
  const std::unique_lock lock(mutex_);
  loaded_ = std::move(made);
}

RecordedFunction& RecordingModel::function(std::string_view name) const {
  (void)loaded_->program.function(name);
  return loaded_->functions.find(name)->second;
}

bool RecordingModel::has(std::string_view name) {
  const std::shared_lock lock(mutex_);
  return loaded_->program.has(name) || name == set_function || name == get_function ||
         (name == parameters_function && !loaded_->program.parameters().empty());
}

void RecordingModel::with(std::string_view name, c10::function_ref<void(RecordedFunction&)> body) {
  try {
    {
      const std::shared_lock lock(mutex_);
      RecordedFunction& function = this->function(name);
      if (!function.of.writes) return body(function);
    }
    const std::unique_lock alone(mutex_);
    body(function(name));
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, settings_.label(name));
  }
}

void RecordingModel::call(std::string_view name, Inputs inputs, int32_t, DirectAnswer& answer) {
  if (name == set_function) return change_number(inputs);
  if (name == get_function) return tell_number(inputs, answer);
  with(name.empty() ? forward_hook : name, [&](RecordedFunction& function) { run(function, inputs, answer); });
}

void RecordingModel::run(RecordedFunction& function, Inputs inputs, DirectAnswer& answer) {
  const OverRanks::Call ranks(*function.over_ranks);
  RecordedCall call(settings_, function, inputs, {nullptr, 0});
  call.run(loaded_->program.state(), loaded_->program.settings());
  answer.set(without_empty(call.result()), function.of.label);
  call.finish(call.tensors());
  answer.changed = call.changed();
}

Training RecordingModel::train(Inputs inputs, Inputs targets) {
  const std::string label = settings_.label(train_hook);
  try {
    const std::unique_lock lock(mutex_);
    RecordedFunction& function = this->function(train_hook);
    const OverRanks::Call ranks(*function.over_ranks);
    RecordedCall call(settings_, function, inputs, targets);
    call.run(loaded_->program.state(), loaded_->program.settings());
    const Training step = call.trained();
    call.finish(call.tensors());
    return step;
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, label);
  }
}

void RecordingModel::change_number(Inputs inputs) {
  const std::string name = text_of_argument(inputs, 0, set_function);
  if (inputs.count != 2 || !is_value(inputs.args[1]) || !value_of(inputs.args[1]).isScalar())
    fail(FPT_ERR_SIGNATURE, set_function, " takes a name and a number");
  const std::unique_lock lock(mutex_);
  loaded_->program.state().set_number(name, value_of(inputs.args[1]).toScalar().toDouble());
}

void RecordingModel::tell_number(Inputs inputs, DirectAnswer& answer) const {
  const std::string name = text_of_argument(inputs, 0, get_function);
  {
    const std::shared_lock lock(mutex_);
    answer.set(loaded_->program.state().number(name), get_function);
  }
}

void RecordingModel::save(const std::string& file) {
  const Rank own = own_rank();
  write(file, /*with_tapes=*/true, std::nullopt, own.number, own.count);
}

void RecordingModel::write(const std::string& path, bool with_tapes, std::optional<int64_t> step, int rank,
                           int ranks) const {
  if (with_tapes && carries_code(path))
    fail(FPT_ERR_HOOK, path, " is not written: a saved recording has no code, give it a name that ends in .ftr");
  const std::shared_lock lock(mutex_);
  write_archive(path, content_of(loaded_->program.state(), with_tapes, step, {rank, ranks}));
}

void RecordingModel::checkpoint(const std::string& folder, int64_t keep, std::optional<int64_t> step) {
  const std::unique_lock lock(mutex_);
  const std::string path = checkpoint_path(folder);
  std::unique_ptr<CheckpointFolder>& known = folders_[path];
  if (!known) known = std::make_unique<CheckpointFolder>(path);
  known->write(keep, step, [this](const std::string& file, int64_t number) {
    write_archive(file, content_of(loaded_->program.state(), /*with_tapes=*/false, number, own_rank()));
  });
}

int64_t RecordingModel::restore(const std::string& file, bool fallback, std::optional<int64_t> step) {
  const std::string path = checkpoint_path(file);
  require_checkpoint(path);
  const std::unique_lock lock(mutex_);
  if (!std::filesystem::is_directory(path)) {
    ftr::Content content = read_archive(path);
    const int64_t taken = step_in(content.description);
    if (step && *step != taken)
      fail(FPT_ERR_NO_CHECKPOINT, path, " holds ", taken < 0 ? "no step" : concat("step ", taken), ", and step ", *step,
           " is asked for");
    go_on_from(std::move(content), path);
    return taken;
  }
  std::unique_ptr<CheckpointFolder>& known = folders_[path];
  if (!known) known = std::make_unique<CheckpointFolder>(path);
  auto [taken, content] = newest(*known, fallback, step);
  go_on_from(std::move(content), path);
  known->went_on_from(taken);
  return taken;
}

void RecordingModel::go_on_from(ftr::Content content, const std::string& path) {
  const std::string description = std::move(content.description);
  loaded_->program.restore(std::move(content), path);
  warn_of_other_rank(description, path, own_rank());
}

std::pair<int64_t, ftr::Content> RecordingModel::newest(CheckpointFolder& folder, bool fallback,
                                                        std::optional<int64_t> step) const {
  std::string failures;
  std::vector<std::string> warnings;
  const std::vector<FolderEntry> entries = folder.candidates(step);
  for (const FolderEntry& entry : entries) try {
      ftr::Content content = read_archive(entry.path);
      for (const std::string& text : warnings) warn(concat(text, "; used instead: ", entry.path));
      return {entry.step, std::move(content)};
    } catch (const Error& error) {
      const bool falls_back =
          error.status() == FPT_ERR_CORRUPT || error.status() == FPT_ERR_FORMAT || error.status() == FPT_ERR_FILE;
      if (!falls_back) throw;
      if (!fallback && entries.size() > 1)
        fail(error.status(), error.text(), "; fallback uses the one of step ", entries[1].step, " before it");
      if (!fallback) throw;
      warnings.push_back(error.text());
      failures += (failures.empty() ? "" : "; ") + error.text();
    }
  fail(FPT_ERR_CORRUPT, "the folder ", folder.path(), " holds no checkpoint that is whole: ", failures);
}

void RecordingModel::assign(std::vector<NamedTensor>) {
  fail(FPT_ERR_HOOK, settings_.file, " is a saved recording, which takes no weights of a network: restore it from a ",
       "checkpoint");
}

void RecordingModel::parameters(DirectAnswer& answer) {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;
  const std::shared_lock lock(mutex_);
  for (const auto& [name, array] : loaded_->program.parameters()) {
    const auto found = loaded_->program.state().arrays().find(array);
    if (found == loaded_->program.state().arrays().end()) continue;
    names.push_back(name);
    tensors.push_back(found->second);
  }
  if (names.empty())
    fail(FPT_ERR_HOOK, settings_.file, " tells no parameters: it has none, or an earlier version wrote it");
  answer.set(std::move(tensors), std::move(names), settings_.label(parameters_function));
}

void RecordingModel::create_optimizer(const OptimizerSettings&) {
  fail(FPT_ERR_HOOK, settings_.file, " is a saved recording, which has the optimizer of its script");
}

std::unique_ptr<Model> load_recording(Settings settings) {
  return std::make_unique<RecordingModel>(std::move(settings));
}

}  // namespace fpt::direct
