// SPDX-License-Identifier: MIT
/// A saved model, loaded by the plug-in as the library opens it.
#pragma once

#include "direct/torch_side.hpp"
#include "support.hpp"

namespace fpt::test {

inline std::string file_of(const std::string& name) {
  return std::filesystem::absolute("direct_" + name + ".pt").string();
}

/// A model, and calls that tell how they ended.
class Model {
 public:
  explicit Model(const std::string& name, const Options& options = {})
      : runner_(torch_side().load(file_of(name), ModelKind::torchscript, options, {})) {}

  Runner* operator->() const { return runner_.get(); }

  Outcome forward(std::vector<fpt_arg> inputs, std::vector<fpt_arg> outputs, int64_t* results = nullptr) const {
    return outcome_of([&] { runner_->run({forward_hook, inputs, {outputs, results}}); });
  }
  Outcome call(const std::string& name, std::vector<fpt_arg> inputs = {}, std::vector<fpt_arg> outputs = {},
               int64_t* results = nullptr) const {
    return outcome_of([&] { runner_->run({name, inputs, {outputs, results}}); });
  }
  Outcome train(std::vector<fpt_arg> inputs, std::vector<fpt_arg> targets, Training* training = nullptr) const {
    Training unused, *said = training ? training : &unused;
    return outcome_of([&] { runner_->run({train_hook, inputs, {}, 0, false, targets, said}); });
  }
  TensorPtr of_list(Args inputs) const {
    TensorPtr made;
    return runner_->run({forward_hook, inputs, {{}, nullptr, &made}, 0, true}), made;
  }

 private:
  std::unique_ptr<Runner> runner_;
};

}  // namespace fpt::test
