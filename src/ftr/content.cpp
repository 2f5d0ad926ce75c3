// SPDX-License-Identifier: MIT
#include "ftr/content.hpp"

#include <cstring>

#include "ftr/holes.hpp"
#include "ftr/plain_archive.hpp"
#include "ftr/plain_values.hpp"

namespace ftr {
namespace {

void take_entry(const std::string& name, const c10::IValue& value, Content& content) {
  if (name == checkpoint_mark) {
    if (!value.isInt() || value.toInt() != 1) fail(Why::format, "it is of a later version of ftn_pytorch");
  } else if (name == "state") {
    content.state = text_in(value, "the state");
  } else if (name == "arrays") {
    for (const auto& entry : dict_in(value, "\"arrays\""))
      content.arrays.emplace_back(text_in(entry.key(), "a key of \"arrays\""), tensor_in(entry.value(), "an array"));
  } else if (name == "numbers") {
    for (const auto& entry : dict_in(value, "\"numbers\"")) {
      if (!entry.value().isDouble()) fail(Why::format, "a number is not real");
      content.numbers.emplace_back(text_in(entry.key(), "a key of \"numbers\""), entry.value().toDouble());
    }
  } else if (name == "generator") {
    const bool is_state = value.isTensor() && value.toTensor().scalar_type() == at::kByte &&
                          value.toTensor().dim() == 1 && value.toTensor().is_contiguous();
    if (!is_state) fail(Why::format, "the state of the generator is no row of bytes");
    content.generator = value.toTensor();
  } else if (name == "holes") {
    content.holes = value;
  } else if (name == "recording") {
    (void)dict_in(value, "\"recording\"");
    content.recording = value;
  } else if (name == "ranks") {
    (void)dict_in(value, "\"ranks\"");  // states of other ranks: whoever runs without Python is one rank for itself
  } else {
    fail(Why::format, "it has the entry \"", name.substr(0, 200), "\"");
  }
}

/// Without tensors Python writes another archive, whose first entry has the name of the mark.
void refuse_numpy(const CheckpointFile& file, const std::string& path) {
  constexpr std::size_t size_of_header = 30;
  std::string start(size_of_header + std::strlen(checkpoint_mark), '\0');
  start.resize(file.read(0, start.data(), start.size()));
  if (start.find(checkpoint_mark) == size_of_header)
    fail(Why::format, path, " holds arrays of NumPy and no tensors: only Python reads it");
}

}  // namespace

Content read_content(const CheckpointFile& file, Numbers numbers) {
  Content content;
  content.description = file.description();
  content.is_recording = file.kind() == FileKind::recording;
  const c10::IValue value = read_plain_archive(
      [&file](uint64_t position, void* to, std::size_t count) { return file.read(position, to, count); },
      file.archive_length(), numbers);
  const c10::impl::GenericDict entries = dict_in(value, "the archive");
  for (const auto& entry : entries) take_entry(text_in(entry.key(), "a key of the archive"), entry.value(), content);
  for (const char* name : {checkpoint_mark, "state", "arrays"})
    if (!entries.contains(name)) fail(Why::format, "its state or its arrays are missing");
  if (!content.holes.isNone()) (void)pieces_of({content.state, content.holes});
  if (content.is_recording != content.recording.isGenericDict())
    fail(Why::format, content.is_recording ? "its tapes are missing" : "it is no saved recording, and has tapes");
  return content;
}

Content read_content(const std::string& path) {
  const CheckpointFile file(path);
  refuse_numpy(file, path);
  const std::string context = path + " has entries that no checkpoint has, so it is not read: ";
  try {
    return read_content(file);
  } catch (const Refusal& refusal) {
    if (refusal.why() != Why::format) throw;
    fail(Why::format, context, refusal.what());
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    fail(Why::format, context, error.what_without_backtrace());
  }
}

}  // namespace ftr
