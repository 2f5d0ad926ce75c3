// SPDX-License-Identifier: MIT
// A main with streams, a thread and exceptions of its own. Unless its code is position independent, the streams of the
// C++ library lie in the memory of the program.
#include <iostream>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" void run_all();

static bool has_right_streams_and_exceptions() {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  try {
    text << 1.5 << std::flush;
    throw std::runtime_error(text.str());
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return error.what() == std::string("1.5") && std::cout.good() && std::cerr.good();
  }
}

int main() {
  if (!has_right_streams_and_exceptions()) return 2;
  std::thread(run_all).join();
  return has_right_streams_and_exceptions() ? 0 : 3;
}
