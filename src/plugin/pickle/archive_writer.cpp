// SPDX-License-Identifier: MIT
#include "plugin/pickle/archive_writer.hpp"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>

namespace fpt::direct {

void write_plain_archive(const WrittenPickle& pickle, const WriteBytes& write) {
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

}  // namespace fpt::direct
