// SPDX-License-Identifier: MIT
#include "plugin/recording/archive_file.hpp"

#include "plugin/failure.hpp"
#include "plugin/pickle/archive_writer.hpp"
#include "plugin/recording/checkpoint_writer.hpp"

namespace fpt::direct {
namespace {

template <class Value>
c10::IValue dict_of_pairs(const std::vector<std::pair<std::string, Value>>& pairs) {
  auto dict = new_plain_dict();
  for (const auto& [name, value] : pairs)
    if (!dict.insert(name, value).second) fail(FPT_ERR_RESULT_TYPE, "the name ", name, " stands twice");
  return dict;
}

c10::IValue value_of(const ftr::Content& content) {
  auto value = new_plain_dict();
  value.insert(ftr::checkpoint_mark, int64_t{1});
  value.insert("state", content.state);
  value.insert("arrays", dict_of_pairs(content.arrays));
  value.insert("numbers", dict_of_pairs(content.numbers));
  if (content.generator.defined()) value.insert("generator", content.generator);
  if (!content.holes.isNone()) value.insert("holes", content.holes);
  if (content.is_recording) value.insert("recording", content.recording);
  return value;
}

}  // namespace

ftr::Content read_archive(const std::string& name) {
  const std::string path = checkpoint_path(name);
  try {
    return ftr::read_content(path);
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, path);
  }
}

void write_archive(const std::string& name, const ftr::Content& content) {
  const std::string path = checkpoint_path(name);
  if (content.is_recording != content.recording.isGenericDict())
    fail(FPT_ERR_RESULT_TYPE, path, " is not written: tapes belong into saved recordings, and nowhere else");
  const at::NoGradGuard no_gradients;
  try {
    const WrittenPickle pickle = write_plain_pickle(value_of(content));
    write_checkpoint_file(
        path, content.is_recording ? ftr::FileKind::recording : ftr::FileKind::checkpoint, content.description,
        [&pickle](const WriteBytes& write) { write_plain_archive(pickle, write); },
        [](const ftr::CheckpointFile& file) { (void)ftr::read_content(file, ftr::Numbers::left); });
  } catch (const Error& error) {
    if (error.status() != FPT_ERR_RESULT_TYPE) throw;
    fail(FPT_ERR_RESULT_TYPE, path, " is not written: ", error.text());
  } catch (...) {
    rethrow_as(FPT_ERR_FILE, path + " cannot be written");
  }
}

}  // namespace fpt::direct
