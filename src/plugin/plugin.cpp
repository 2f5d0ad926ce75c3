// SPDX-License-Identifier: MIT
/// What the plug-in is to the core, which it tells so while it is loaded.
#include "direct/torch_side.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/direct_runner.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/failure.hpp"
#include "plugin/parts.hpp"
#include "plugin/products.hpp"
#include "plugin/torchscript.hpp"

namespace fpt::direct {
namespace {

class DirectSide : public TorchSide {
 public:
  Engine& engine() override { return engine_of_torch(); }
  std::unique_ptr<Runner> functions(bool same_layout) override { return functions_of_torch(same_layout); }
  std::string obstacle(ModelKind kind) override {
    return kind == ModelKind::torchscript ? torchscript_obstacle() : std::string();
  }
  std::unique_ptr<Runner> load(const std::string& file, ModelKind kind, const Options& options, Args config) override {
    return DirectRunner::load(file, kind, options, config);
  }

  std::shared_ptr<Answer> answer_of(Tensor& tensor, const CallName& call) override {
    const Held held = at_tensor_of(tensor);
    if (!held->defined()) return nullptr;
    auto answer = std::make_shared<RecordedAnswer>();
    translated([&] { answer->set(at::Tensor(*held), concat(call)); });
    return answer;
  }

  void set_threads(int64_t n) override {
    translated([&] { at::set_num_threads(static_cast<int>(n)); });
  }
  const char* wrong_product() override { return translated(direct::wrong_product); }
};

[[maybe_unused]] const bool provided = (provide_torch_side(*new DirectSide), true);

}  // namespace
}  // namespace fpt::direct
