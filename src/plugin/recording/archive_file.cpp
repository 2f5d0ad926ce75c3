// SPDX-License-Identifier: MIT
#include "plugin/recording/archive_file.hpp"

#include "plugin/failure.hpp"
#include "plugin/pickle/plain_archive.hpp"
#include "plugin/recording/checkpoint_file.hpp"
#include "plugin/recording/pieces.hpp"

namespace fpt::direct {
namespace {

c10::impl::GenericDict dict_of(const c10::IValue& value, const char* what) {
  if (!value.isGenericDict()) fail(FPT_ERR_FORMAT, what, " is no dict");
  return value.toGenericDict();
}

const std::string& name_in(const c10::IValue& key, const char* what) {
  if (!key.isString()) fail(FPT_ERR_FORMAT, "a key of ", what, " is no text");
  return key.toStringRef();
}

void take_entry(const std::string& name, const c10::IValue& value, ArchiveContent& content) {
  if (name == checkpoint_mark) {
    if (!value.isInt() || value.toInt() != 1) fail(FPT_ERR_FORMAT, "it is of a later version of ftn_pytorch");
  } else if (name == "state") {
    if (!value.isString()) fail(FPT_ERR_FORMAT, "the state is no text");
    content.state = value.toStringRef();
  } else if (name == "arrays") {
    for (const auto& entry : dict_of(value, "\"arrays\"")) {
      if (!entry.value().isTensor()) fail(FPT_ERR_FORMAT, "an array is no tensor");
      content.arrays.emplace_back(name_in(entry.key(), "\"arrays\""), entry.value().toTensor());
    }
  } else if (name == "numbers") {
    for (const auto& entry : dict_of(value, "\"numbers\"")) {
      if (!entry.value().isDouble()) fail(FPT_ERR_FORMAT, "a number is not real");
      content.numbers.emplace_back(name_in(entry.key(), "\"numbers\""), entry.value().toDouble());
    }
  } else if (name == "generator") {
    const bool is_state = value.isTensor() && value.toTensor().scalar_type() == at::kByte &&
                          value.toTensor().dim() == 1 && value.toTensor().is_contiguous();
    if (!is_state) fail(FPT_ERR_FORMAT, "the state of the generator is no row of bytes");
    content.generator = value.toTensor();
  } else if (name == "holes") {
    content.holes = value;
  } else if (name == "recording") {
    (void)dict_of(value, "\"recording\"");
    content.recording = value;
  } else if (name == "ranks") {
    (void)dict_of(value, "\"ranks\"");  // states of other ranks: whoever runs without Python is one rank for itself
  } else {
    fail(FPT_ERR_FORMAT, "it has the entry \"", as_utf8(name.substr(0, 200)), "\"");
  }
}

/// Without tensors Python writes another archive, whose first entry has the name of the mark.
void refuse_numpy(const CheckpointFile& file, const std::string& path) {
  constexpr std::size_t size_of_header = 30;
  std::string start(size_of_header + std::strlen(checkpoint_mark), '\0');
  start.resize(file.read(0, start.data(), start.size()));
  if (start.find(checkpoint_mark) == size_of_header)
    fail(FPT_ERR_FORMAT, path, " holds arrays of NumPy and no tensors: only Python reads it");
}

void read_content(const CheckpointFile& file, ArchiveContent& content, Numbers numbers = Numbers::read) {
  content.description = file.description();
  content.is_recording = file.kind() == FileKind::recording;
  const c10::IValue value = read_plain_archive(
      [&file](uint64_t position, void* to, std::size_t count) { return file.read(position, to, count); },
      file.archive_length(), numbers);
  bool has_mark = false, has_state = false, has_arrays = false;
  for (const auto& entry : dict_of(value, "the archive")) {
    const std::string& name = name_in(entry.key(), "the archive");
    has_mark = has_mark || name == checkpoint_mark;
    has_state = has_state || name == "state";
    has_arrays = has_arrays || name == "arrays";
    take_entry(name, entry.value(), content);
  }
  if (!has_mark || !has_state || !has_arrays) fail(FPT_ERR_FORMAT, "its state or its arrays are missing");
  if (!content.holes.isNone()) (void)opened({content.state, content.holes});
  if (content.is_recording != content.recording.isGenericDict())
    fail(FPT_ERR_FORMAT, content.is_recording ? "its tapes are missing" : "it is no saved recording, and has tapes");
}

template <class Value>
c10::IValue dict_of_pairs(const std::vector<std::pair<std::string, Value>>& pairs) {
  auto dict = new_plain_dict();
  for (const auto& [name, value] : pairs)
    if (!dict.insert(name, value).second) fail(FPT_ERR_RESULT_TYPE, "the name ", name, " stands twice");
  return dict;
}

c10::IValue value_of(const ArchiveContent& content) {
  auto value = new_plain_dict();
  value.insert(checkpoint_mark, int64_t{1});
  value.insert("state", content.state);
  value.insert("arrays", dict_of_pairs(content.arrays));
  value.insert("numbers", dict_of_pairs(content.numbers));
  if (content.generator.defined()) value.insert("generator", content.generator);
  if (!content.holes.isNone()) value.insert("holes", content.holes);
  if (content.is_recording) value.insert("recording", content.recording);
  return value;
}

}  // namespace

ArchiveContent read_archive(const std::string& name) {
  const std::string path = checkpoint_path(name);
  const CheckpointFile file(path);
  refuse_numpy(file, path);
  ArchiveContent content;
  const std::string context = path + " has entries that no checkpoint has, so it is not read";
  try {
    read_content(file, content);
  } catch (const Error& error) {
    if (error.status() != FPT_ERR_FORMAT) throw;
    fail(FPT_ERR_FORMAT, context, ": ", error.text());
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, context);
  }
  return content;
}

void write_archive(const std::string& name, const ArchiveContent& content) {
  const std::string path = checkpoint_path(name);
  if (content.is_recording != content.recording.isGenericDict())
    fail(FPT_ERR_RESULT_TYPE, path, " is not written: tapes belong into saved recordings, and nowhere else");
  const at::NoGradGuard no_gradients;
  try {
    const WrittenPickle pickle = write_plain_pickle(value_of(content));
    write_checkpoint_file(
        path, content.is_recording ? FileKind::recording : FileKind::checkpoint, content.description,
        [&pickle](const WriteBytes& write) { write_plain_archive(pickle, write); },
        [](const CheckpointFile& file) {
          ArchiveContent written;
          read_content(file, written, Numbers::left);
        });
  } catch (const Error& error) {
    if (error.status() != FPT_ERR_RESULT_TYPE) throw;
    fail(FPT_ERR_RESULT_TYPE, path, " is not written: ", error.text());
  } catch (...) {
    rethrow_as(FPT_ERR_FILE, path + " cannot be written");
  }
}

}  // namespace fpt::direct
