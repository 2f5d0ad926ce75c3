// SPDX-License-Identifier: MIT
/// Models as the plug-in runs them, below the handles of the program, with those of
/// tests/fortran/scripts/make_direct_models.py.
#pragma once

#include "plugin/direct_answer.hpp"
#include "plugin/parts.hpp"
#include "plugin/tensors.hpp"
#include "plugin/torchscript.hpp"
#include "support.hpp"

namespace fpt::test {

using direct::Settings;

/// A loaded model; values of its latest answer.
class Loaded {
 public:
  explicit Loaded(const std::string& name, Settings settings = {}) : Loaded("direct_" + name + ".pt", name, settings) {}
  Loaded(const std::string& file, const std::string& name, Settings settings) {
    settings.file = file;
    settings.name = name;
    model = direct::load_script(std::move(settings));
  }

  /// The latest answer, which is one tensor, and a value of it.
  Array array() const { return direct::array_of_tensor(answer->result(0), true); }
  template <class T>
  const T& at(std::size_t index) const {
    return static_cast<const T*>(answer->result(0).const_data_ptr())[index];
  }

  Outcome call(const char* name, std::vector<fpt_arg> inputs) {
    answer = std::make_shared<direct::DirectAnswer>();
    return outcome_of([&] { model->call(name ? name : "", list(inputs), 0, *answer); });
  }
  Outcome train(const fpt_arg& input, const fpt_arg& target) {
    return outcome_of([&] { loss = model->train({&input, 1}, {&target, 1}).loss; });
  }
  Outcome create_optimizer(const OptimizerSettings& settings) {
    return outcome_of([&] { model->create_optimizer(settings); });
  }
  Outcome save(const std::string& file) {
    return outcome_of([&] { model->save(file); });
  }
  Outcome restore(const std::string& file) {
    return outcome_of([&] { model->restore(file, false, std::nullopt); });
  }

  std::unique_ptr<direct::Model> model;
  std::shared_ptr<direct::DirectAnswer> answer;
  double loss = -1;

 private:
  static direct::Inputs list(const std::vector<fpt_arg>& inputs) {
    return {inputs.data(), static_cast<int32_t>(inputs.size())};
  }
};

}  // namespace fpt::test
