// SPDX-License-Identifier: MIT
#include "ftr/program.hpp"

#include "ftr/plain_values.hpp"

namespace ftr {
namespace {

constexpr int64_t format_of_recordings = 2;

Average without_ranks(const std::string& function) {
  return [function](c10::Stack&) {
    fail(Why::argument, function, " averages over ranks, and nothing was given that does it");
  };
}

}  // namespace

Program::Program(const std::string& file, const Options& options)
    : file_(file), state_(read_content(file), file, options.device) {
  try {
    read(options);
  } catch (const Refusal& refusal) {
    if (refusal.why() != Why::format) throw;
    fail(Why::format, unrunnable(file_, refusal.what()));
  }
  if (options.starts_generator) state_.start_generator();
}

void Program::read(const Options& options) {
  const c10::IValue& recording = state_.content().recording;
  const int64_t version = integer_in(entry_in(recording, "version"), "\"version\"");
  if (version != format_of_recordings)
    fail(Why::format, "it has format ", version, " of recordings, and this version reads ", format_of_recordings);
  (void)entry_in(recording, "description");
  for (const auto& entry : dict_in(entry_in(recording, "functions"), "\"functions\"")) {
    const std::string& name = text_in(entry.key(), "the name of a function");
    Function& function = functions_[name];
    function.label = name;
    const SavedContext context{name, state_.names(), options.device.value_or(at::kCPU),
                               options.average_of ? options.average_of(name) : without_ranks(name)};
    for (const c10::IValue& tape : items_in(entry.value(), "the recordings of a function")) {
      function.recordings.push_back(std::make_unique<Recording>(read_tape(tape, context)));
      function.writes = function.writes || function.recordings.back()->tape.writes;
      note_uses(function.recordings.back()->tape);
    }
  }
  read_parameters(recording);
  settings_.emplace(recording, options.device && options.device->is_cuda());
}

void Program::note_uses(const SavedTape& tape) {
  std::set<const void*> used;
  for (const at::Tensor& each : tape.tensors) used.insert(each.storage().unsafeGetStorageImpl());
  for (const auto& [name, array] : state_.arrays())
    if (used.count(array.storage().unsafeGetStorageImpl()) != 0) arrays_[name] = array;
  for (const SavedNumber& each : tape.numbers)
    if (!each.counter.defined()) numbers_.insert(each.setting);
}

void Program::read_parameters(const c10::IValue& recording) {
  if (!recording.toGenericDict().contains("parameters")) return;  // an earlier version wrote it
  for (const c10::IValue& each : items_in(entry_in(recording, "parameters"), "\"parameters\"")) {
    const std::vector<c10::IValue> parts = parts_in(each, 2, "a parameter");
    parameters_.emplace_back(text_in(parts[0], "its name"), text_in(parts[1], "its array"));
  }
}

Function& Program::function(std::string_view name) {
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second;
  std::string there;
  for (const auto& each : functions_) there += (there.empty() ? "" : ", ") + each.first;
  fail(Why::function, file_, " has no function ", name, "; it has ", there);
}

c10::IValue Program::run(std::string_view name, const std::vector<Given>& given) {
  const at::NoGradGuard no_gradients;
  Call call(function(name));
  for (const Given& each : given) call.add(each);
  call.choose(state_);
  call.run(state_, *settings_);
  return call.result();
}

void Program::restore(Content content, const std::string& path) {
  state_.restore(std::move(content), path, arrays_, numbers_);
}

}  // namespace ftr
