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
  note_reads(recording);
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

void Program::note_reads(const c10::IValue& recording) {
  if (!recording.toGenericDict().contains("read")) return;  // an earlier version wrote it
  StateText state(state_.content().state);
  for (const c10::IValue& each : items_in(entry_in(recording, "read"), "\"read\"")) {
    const std::vector<c10::IValue> parts = parts_in(each, 3, "what was read");
    Read read{text_in(parts[0], "its name"), {}, logical_in(parts[2], "whether it may be missing"), std::nullopt};
    for (const c10::IValue& step : items_in(parts[1], "its way"))
      read.way.push_back(text_in(step, "a step of its way"));
    read.text = state.at(read.way);
    reads_.push_back(std::move(read));
  }
}

/// A recording is right while all that it has read is the same; a script would go another way with other values.
void Program::require_as_read(const Content& content, const std::string& path) const {
  constexpr std::size_t shown = 100;
  const auto told = [](const std::optional<std::string_view>& text) {
    return text ? std::string(text->substr(0, shown)) : std::string("as the script makes it");
  };
  StateText state(content.state);
  for (const Read& each : reads_) {
    const std::optional<std::string_view> there = state.at(each.way);
    if (there == each.text || (!there && each.may_lack)) continue;
    fail(Why::format, path, " does not fit the recordings in ", file_, ", which were made with another value of ",
         each.what, ": it is ", told(there), " in the checkpoint, and ", told(each.text),
         " in the recordings. Let the script restore the checkpoint, and save its recordings again");
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
  // What is beside it was published last, and may be older than what was learnt.
  if (StateText(content.state).at({"0", "\"objects\"", "\"torch_background\""}))
    fail(Why::format, path, " was written with background=, so that what was learnt is the state of another process: ",
         "let the script restore it without background=, and write it again");
  require_as_read(content, path);
  state_.restore(std::move(content), path, arrays_, numbers_);
}

}  // namespace ftr
