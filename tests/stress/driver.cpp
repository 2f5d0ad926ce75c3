// SPDX-License-Identifier: MIT
/// Does what it is told on standard input, a command a line, and answers each with a line. test_hostile.py speaks to
/// it. Built as a program, which embeds Python, and as a library that a running Python loads, which is then adopted.
///
/// Words are separated by blanks; texts and memory are written in hexadecimal, "-" where empty. Every answer begins
/// with a status. An argument that is described again under its number takes the place of the old one.
///
///   load MODULE FILE {NAME VALUE}            options are texts, cast is 1
///   free MODULE | reload MODULE
///   block BLOCK BYTES                        memory at an address of its own that stays when it is given again
///   read BLOCK                               -> status bytes
///   array ARG BLOCK OFFSET DTYPE RANK {EXTENT} {STRIDE} ACCESS NAME
///   text ARG TEXT NAME
///   call MODULE FUNCTION INPUTS {ARG} OUTPUTS {ARG}      -> status text
///   train MODULE INPUTS {ARG} TARGETS {ARG}              -> status text completed loss
///   warnings                                 -> 0 text, those since the last time
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ftn_pytorch.h"

namespace {

std::string warnings;

std::string to_hex(const void* memory, std::size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string result;
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned char byte = static_cast<const unsigned char*>(memory)[i];
    result += {digits[byte >> 4], digits[byte & 15]};
  }
  return result.empty() ? "-" : result;
}

std::string from_hex(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; text != "-" && i + 1 < text.size(); i += 2)
    result += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return result;
}

class Driver {
 public:
  std::string answer(const std::string& line) {
    words_.clear();
    words_.str(line);
    const std::string command = word();
    if (command == "load") return load();
    if (command == "free") return fpt_module_free(modules_[number()]), "0";
    if (command == "reload") return told(fpt_module_reload(modules_[number()]));
    if (command == "block") return block();
    if (command == "read") return read();
    if (command == "array") return array();
    if (command == "text") return text();
    if (command == "call") return call();
    if (command == "train") return train();
    if (command == "warnings") {
      const std::string told_so_far = std::exchange(warnings, {});
      return "0 " + to_hex(told_so_far.data(), told_so_far.size());
    }
    return "-1 " + to_hex(command.data(), command.size());
  }

 private:
  std::string word() {
    std::string result;
    words_ >> result;
    return result;
  }
  int64_t number() { return std::stoll(word()); }

  static std::string told(fpt_status status) {
    const char* text = "";
    int64_t length = 0;
    if (status != FPT_OK) fpt_error_text(&text, &length);
    return std::to_string(status) + " " + to_hex(text, static_cast<std::size_t>(length));
  }

  std::vector<fpt_arg> arguments() {
    std::vector<fpt_arg> result(static_cast<std::size_t>(number()));
    for (fpt_arg& arg : result) arg = args_[number()];
    return result;
  }

  std::string load() {
    fpt_module& module = modules_[number()];
    const std::string file = from_hex(word());
    std::vector<fpt_arg> options;
    std::vector<std::string> values;
    for (std::string name = word(); !name.empty(); name = word()) {
      const std::string value = from_hex(word());
      options.emplace_back();
      const int32_t one = 1;
      if (name == "cast")
        fpt_arg_array(&options.back(), const_cast<int32_t*>(&one), FPT_INT32, 0, nullptr, nullptr, FPT_IN);
      else
        fpt_arg_text(&options.back(), value.data(), static_cast<int64_t>(value.size()), FPT_IN);
      fpt_arg_name(&options.back(), name.data(), static_cast<int64_t>(name.size()));
    }
    return told(fpt_module_load(&module, 0, file.data(), static_cast<int64_t>(file.size()), options.data(),
                                static_cast<int32_t>(options.size()), nullptr, 0));
  }

  std::string block() {
    std::string& memory = blocks_[number()];
    const std::string bytes = from_hex(word());
    memory.reserve(8192);  // so that it stays where it is
    memory.replace(0, bytes.size(), bytes);
    return "0";
  }

  std::string read() {
    const std::string& memory = blocks_[number()];
    return "0 " + to_hex(memory.data(), memory.size());
  }

  std::string array() {
    fpt_arg& arg = args_[number()];
    std::string& memory = blocks_[number()];
    char* data = memory.data() + number();
    const auto dtype = static_cast<int32_t>(number()), rank = static_cast<int32_t>(number());
    int64_t extents[FPT_MAX_RANK] = {}, strides[FPT_MAX_RANK] = {};
    for (int i = 0; i < rank; ++i) extents[i] = number();
    for (int i = 0; i < rank; ++i) strides[i] = number();
    const auto access = static_cast<int32_t>(number());
    const fpt_status status = fpt_arg_array(&arg, data, dtype, rank, extents, strides, access);
    return named(arg, status);
  }

  std::string text() {
    fpt_arg& arg = args_[number()];
    const std::string value = from_hex(word());
    return named(arg, fpt_arg_text(&arg, value.data(), static_cast<int64_t>(value.size()), FPT_IN));
  }

  std::string named(fpt_arg& arg, fpt_status status) {
    const std::string name = from_hex(word());
    if (!name.empty()) status = fpt_arg_name(&arg, name.data(), static_cast<int64_t>(name.size()));
    return told(status);
  }

  std::string call() {
    const fpt_module module = modules_[number()];
    const std::string name = from_hex(word());
    std::vector<fpt_arg> inputs = arguments(), outputs = arguments();
    return told(fpt_module_call(module, name.data(), static_cast<int64_t>(name.size()), inputs.data(),
                                static_cast<int32_t>(inputs.size()), outputs.data(),
                                static_cast<int32_t>(outputs.size()), nullptr));
  }

  std::string train() {
    const fpt_module module = modules_[number()];
    std::vector<fpt_arg> inputs = arguments(), targets = arguments();
    int32_t completed = -1;
    double loss = -1;
    const fpt_status status = fpt_module_train(module, inputs.data(), static_cast<int32_t>(inputs.size()),
                                               targets.data(), static_cast<int32_t>(targets.size()), &completed, &loss);
    return told(status) + " " + std::to_string(completed) + " " + to_hex(&loss, sizeof loss);
  }

  std::istringstream words_;
  std::map<int64_t, fpt_module> modules_;
  std::map<int64_t, std::string> blocks_;
  std::map<int64_t, fpt_arg> args_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int driver_main() {
  static Driver& driver = *new Driver;
  fpt_on_warning(
      [](const char* text, int64_t length) { warnings.append(text, static_cast<std::size_t>(length)) += '\n'; });
  for (std::string line; std::getline(std::cin, line);) std::cout << driver.answer(line) << std::endl;
  return 0;
}

#ifdef DRIVER_IS_A_PROGRAM
int main() { return driver_main(); }
#endif
