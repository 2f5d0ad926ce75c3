// SPDX-License-Identifier: MIT
/// The plug-in by its table, as the core uses it, with the models of tests/fortran/scripts/make_direct_models.py.
#pragma once

#include <dlfcn.h>

#include "direct/fpt_direct.h"
#include "support.hpp"

namespace fpt::test {

inline const fpt_direct_table& plugin() {
  static const fpt_direct_table* table = [] {
    void* library = dlopen(std::getenv("FPT_TEST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return reinterpret_cast<decltype(&fpt_direct_table_get)>(dlsym(library, FPT_DIRECT_SYMBOL))();
  }();
  return *table;
}

inline Outcome outcome(fpt_status status) { return {status, status == FPT_OK ? "" : plugin().error_text()}; }

/// The outcome of going on from a file.
inline Outcome restored(fpt_direct_module* module, const std::string& file) {
  int64_t step = 0;
  return outcome(plugin().restore(module, file.c_str(), 0, -1, &step));
}

/// A loaded model; values of its latest answer.
class Loaded {
 public:
  explicit Loaded(const std::string& name, fpt_direct_options options = {}) {
    options.name = name.c_str();
    EXPECT_OK(outcome(plugin().load(("direct_" + name + ".pt").c_str(), &options, &module)));
  }
  ~Loaded() {
    release();
    plugin().unload(module);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  /// A value of the latest answer, which is one tensor.
  template <class T>
  const T& at(std::size_t index) const {
    return static_cast<const T*>(answer.values[0].data)[index];
  }

  Outcome call(const char* name, std::vector<fpt_arg> inputs) {
    release();
    return outcome(plugin().call(module, name, name ? static_cast<int64_t>(std::char_traits<char>::length(name)) : 0,
                                 inputs.data(), nullptr, static_cast<int32_t>(inputs.size()), 0, &answer));
  }
  void release() {
    if (answer.owner) plugin().release(answer.owner);
    answer = {};
  }

  Outcome train(const fpt_arg& input, const fpt_arg& target) {
    int32_t completed = 0;
    return outcome(plugin().train(module, &input, 1, &target, 1, &loss, &completed));
  }

  fpt_direct_module* module = nullptr;
  fpt_direct_answer answer{};
  double loss = -1;
};

}  // namespace fpt::test
