// SPDX-License-Identifier: MIT
#include "ftr/plain_archive.hpp"

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <tuple>
#include <unordered_map>

#include "ftr/plain_pickle.hpp"

namespace ftr {
namespace {

class Source : public caffe2::serialize::ReadAdapterInterface {
 public:
  Source(const ReadBytes& read, std::size_t length) : read_(read), length_(length) {}
  std::size_t size() const override { return length_; }
  std::size_t read(uint64_t position, void* to, std::size_t count, const char*) const override {
    return read_(position, to, count);
  }

 private:
  const ReadBytes& read_;
  const std::size_t length_;
};

/// Records of an archive, which never take more memory than the archive has bytes: torch compresses none of them.
class Records {
 public:
  Records(const ReadBytes& read, std::size_t length, Numbers numbers)
      : reader_(std::make_shared<Source>(read, length)), left_(length), numbers_(numbers) {}

  bool has(const std::string& name) { return reader_.hasRecord(name); }

  std::string text(const std::string& name) {
    std::string bytes(size_of(name), '\0');
    if (reader_.getRecord(name, bytes.data(), bytes.size()) != bytes.size()) fail(Why::format, name, " is too short");
    return bytes;
  }

  c10::Storage storage(const std::string& name) {
    const auto known = storages_.find(name);
    if (known != storages_.end()) return known->second;
    const std::string record = "data/" + name;
    if (name.empty() || name.find('/') != std::string::npos || !has(record))
      fail(Why::format, "the storage \"", name.substr(0, 200), "\" is missing");
    const std::size_t size = size_of(record);
    at::DataPtr data(nullptr, at::kCPU);
    if (numbers_ == Numbers::read) {
      std::size_t length = 0;
      std::tie(data, length) = reader_.getRecord(record);
      if (length != size) fail(Why::format, record, " is too short");
    }
    c10::Storage storage(c10::Storage::use_byte_size_t(), size, std::move(data), nullptr, false);
    return storages_.emplace(name, std::move(storage)).first->second;
  }

 private:
  std::size_t size_of(const std::string& name) {
    const std::size_t size = reader_.getRecordSize(name);
    if (size > left_) fail(Why::format, name, " is larger than the archive");
    left_ -= size;
    return size;
  }

  caffe2::serialize::PyTorchStreamReader reader_;
  uint64_t left_;
  Numbers numbers_;
  std::unordered_map<std::string, c10::Storage> storages_;
};

}  // namespace

c10::IValue read_plain_archive(const ReadBytes& read, std::size_t length, Numbers numbers) {
  Records records(read, length, numbers);
  if (records.has("byteorder") && records.text("byteorder") != "little")
    fail(Why::format, "it was written on a machine of another byte order");
  if (!records.has("data.pkl")) fail(Why::format, "torch.save has not written it");
  const std::string pickle = records.text("data.pkl");
  return read_plain_pickle(pickle, [&records](const std::string& name) { return records.storage(name); });
}

}  // namespace ftr
