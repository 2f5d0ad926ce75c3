// SPDX-License-Identifier: MIT
// A main program in C++ that writes to std::cout: code that is not position independent has the stream in its own
// memory.
//
//     libraries_streams_KIND <script>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>

#include "ftn_pytorch.h"

int main(int count, char** arguments) {
  const std::string file = count > 1 ? arguments[1] : "";
  fpt_module module = 0;
  const fpt_status status =
      fpt_module_load(&module, 0, file.data(), static_cast<int64_t>(file.size()), nullptr, 0, nullptr, 0);
  const char* text = "";
  int64_t length = 0;
  if (status != FPT_OK) fpt_error_text(&text, &length);
  try {
    throw std::runtime_error("caught");
  } catch (const std::exception& error) {
    std::cout << error.what() << " " << status << " " << std::string(text, static_cast<std::size_t>(length)) << "\n";
  }
}
