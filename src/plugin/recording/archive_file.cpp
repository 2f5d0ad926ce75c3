// SPDX-License-Identifier: MIT
#include "plugin/recording/archive_file.hpp"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <tuple>
#include <unordered_map>

#include "plugin/failure.hpp"
#include "plugin/recording/checkpoint_file.hpp"
#include "plugin/recording/pickle_writer.hpp"
#include "plugin/recording/pieces.hpp"
#include "plugin/recording/plain_pickle.hpp"

namespace fpt::direct {
namespace {

/// The archive at the beginning of a file, for torch.
class ArchivePart : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit ArchivePart(const CheckpointFile& file) : file_(file) {}
  std::size_t size() const override { return file_.archive_length(); }
  std::size_t read(uint64_t position, void* to, std::size_t count, const char*) const override {
    return file_.read(position, to, count);
  }

 private:
  const CheckpointFile& file_;
};

/// Of tensors: read, or left where they are, where the digest tells enough.
enum class Numbers { read, left };

/// Records of an archive, which never take more memory than the archive has bytes: torch compresses none of them.
class Records {
 public:
  Records(const CheckpointFile& file, Numbers numbers)
      : reader_(std::make_shared<ArchivePart>(file)), left_(file.archive_length()), numbers_(numbers) {}

  bool has(const std::string& name) { return reader_.hasRecord(name); }

  std::string text(const std::string& name) {
    std::string bytes(size_of(name), '\0');
    if (reader_.getRecord(name, bytes.data(), bytes.size()) != bytes.size())
      fail(FPT_ERR_FORMAT, name, " is too short");
    return bytes;
  }

  c10::Storage storage(const std::string& name) {
    const auto known = storages_.find(name);
    if (known != storages_.end()) return known->second;
    const std::string record = "data/" + name;
    if (name.empty() || name.find('/') != std::string::npos || !has(record))
      fail(FPT_ERR_FORMAT, "the storage \"", as_utf8(name.substr(0, 200)), "\" is missing");
    const std::size_t size = size_of(record);
    at::DataPtr data(nullptr, at::kCPU);
    if (numbers_ == Numbers::read) {
      std::size_t length = 0;
      std::tie(data, length) = reader_.getRecord(record);
      if (length != size) fail(FPT_ERR_FORMAT, record, " is too short");
    }
    c10::Storage storage(c10::Storage::use_byte_size_t(), size, std::move(data), nullptr, false);
    return storages_.emplace(name, std::move(storage)).first->second;
  }

 private:
  std::size_t size_of(const std::string& name) {
    const std::size_t size = reader_.getRecordSize(name);
    if (size > left_) fail(FPT_ERR_FORMAT, name, " is larger than the archive");
    left_ -= size;
    return size;
  }

  caffe2::serialize::PyTorchStreamReader reader_;
  uint64_t left_;
  Numbers numbers_;
  std::unordered_map<std::string, c10::Storage> storages_;
};

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
  Records records(file, numbers);
  if (records.has("byteorder") && records.text("byteorder") != "little")
    fail(FPT_ERR_FORMAT, "it was written on a machine of another byte order");
  if (!records.has("data.pkl")) fail(FPT_ERR_FORMAT, "torch.save has not written it");
  const std::string pickle = records.text("data.pkl");
  const c10::IValue value =
      read_plain_pickle(pickle, [&records](const std::string& name) { return records.storage(name); });
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

c10::impl::GenericDict new_dict() { return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()); }

template <class Value>
c10::IValue dict_of_pairs(const std::vector<std::pair<std::string, Value>>& pairs) {
  auto dict = new_dict();
  for (const auto& [name, value] : pairs)
    if (!dict.insert(name, value).second) fail(FPT_ERR_RESULT_TYPE, "the name ", name, " stands twice");
  return dict;
}

c10::IValue value_of(const ArchiveContent& content) {
  auto value = new_dict();
  value.insert(checkpoint_mark, int64_t{1});
  value.insert("state", content.state);
  value.insert("arrays", dict_of_pairs(content.arrays));
  value.insert("numbers", dict_of_pairs(content.numbers));
  if (content.generator.defined()) value.insert("generator", content.generator);
  if (!content.holes.isNone()) value.insert("holes", content.holes);
  if (content.is_recording) value.insert("recording", content.recording);
  return value;
}

void write_content(const WrittenPickle& pickle, const WriteBytes& write) {
  caffe2::serialize::PyTorchStreamWriter archive([&write](const void* data, std::size_t size) {
    write(data, size);
    return size;
  });
  archive.writeRecord("data.pkl", pickle.bytes.data(), pickle.bytes.size());
  archive.writeRecord("byteorder", "little", 6);
  for (std::size_t i = 0; i < pickle.storages.size(); ++i) {
    const c10::Storage& storage = pickle.storages[i];
    const auto size = static_cast<int64_t>(storage.nbytes());
    at::Tensor bytes = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(storage.device()));
    bytes = bytes.set_(storage, 0, {size}, {1}).cpu();
    archive.writeRecord(concat("data/", i), size > 0 ? bytes.const_data_ptr() : "", bytes.nbytes());
  }
  archive.writeEndOfFile();
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
        [&pickle](const WriteBytes& write) { write_content(pickle, write); },
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
