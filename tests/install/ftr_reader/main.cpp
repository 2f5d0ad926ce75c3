// SPDX-License-Identifier: MIT
/// Makes calls of a .ftr file, and prints results and state bit for bit.
///
///     program FILE CALLS
///
/// CALLS is what torch.save writes of [(function, [arguments]), ...]. The exit code is 10 plus the number of Why for
/// what the reader refuses, and 2 for what an operator throws.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "ftr/plain_archive.hpp"
#include "ftr/plain_values.hpp"
#include "ftr/program.hpp"
#include "ftr/stored_tensor.hpp"

namespace {

void show(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(dense.const_data_ptr());
  std::printf(" %s=", ftr::name_of(dense.scalar_type()));
  for (std::size_t i = 0; i < dense.nbytes(); ++i) std::printf("%02x", bytes[i]);
}

/// Tensors and constants in their order, without the containers around them.
void show(const c10::IValue& value) {
  if (value.isTensor()) return show(value.toTensor());
  if (value.isBool()) {
    std::printf(" %s", value.toBool() ? "True" : "False");
  } else if (value.isTuple() || value.isList()) {
    for (const c10::IValue& each : ftr::items_in(value, "a result")) show(each);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) show(entry.value());
  } else {
    std::cout << " " << value << std::flush;
  }
}

c10::IValue saved_value(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  const auto read = [&bytes](uint64_t position, void* to, std::size_t count) {
    return position < bytes.size() ? bytes.copy(static_cast<char*>(to), count, position) : 0;
  };
  return ftr::read_plain_archive(read, bytes.size());
}

}  // namespace

int main(int, char** argv) try {
  ftr::Program program(argv[1]);
  for (const c10::IValue& call : ftr::items_in(saved_value(argv[2]), "calls")) {
    const std::vector<c10::IValue> parts = ftr::parts_in(call, 2, "a call");
    std::vector<ftr::Given> given;
    for (const c10::IValue& each : ftr::items_in(parts[1], "arguments")) given.push_back({each});
    show(program.run(ftr::text_in(parts[0], "a function"), given));
    std::printf("\n");
  }
  for (const auto& [name, array] : program.state().arrays()) {
    std::printf("%s\t", name.c_str());
    show(array);
    std::printf("\n");
  }
  return 0;
} catch (const ftr::Refusal& refusal) {
  std::cerr << refusal.what() << "\n";
  return 10 + static_cast<int>(refusal.why());
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
