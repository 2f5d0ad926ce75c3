// SPDX-License-Identifier: MIT
/// What the plug-in, which is linked with libtorch, does for the rest of the library. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "calls/options.hpp"
#include "calls/runner.hpp"
#include "direct/archive.hpp"
#include "values/engine.hpp"

namespace fpt {

/// What its methods throw is an Error.
class FPT_API TorchSide {
 public:
  virtual ~TorchSide() = default;

  virtual Engine& engine() = 0;
  /// The functions of torch, and the objects that they make.
  virtual std::unique_ptr<Runner> functions(bool same_layout) = 0;
  /// Why models of a kind cannot be run; empty if nothing speaks against it. Opens nothing.
  virtual std::string obstacle(ModelKind kind) = 0;
  /// A saved model at an absolute path. FPT_ERR_ARGUMENT for options and a config that it cannot have, FPT_ERR_FILE,
  /// FPT_ERR_FORMAT, FPT_ERR_DEVICE, FPT_ERR_VERSION, FPT_ERR_IMPORT for what `obstacle` tells.
  virtual std::unique_ptr<Runner> load(const std::string& file, ModelKind kind, const Options& options,
                                       Args config) = 0;
  /// A tensor as the result of a call; null for an object of Python alone.
  virtual std::shared_ptr<Answer> answer_of(Tensor& tensor, const CallName& call) = 0;

  /// Threads that torch uses for one operation.
  virtual void set_threads(int64_t n) = 0;
  /// The function of torch that gives wrong numbers, null where all are right that use a BLAS or LAPACK.
  virtual const char* wrong_product() = 0;
};

/// The plug-in, opened when it is first asked for. FPT_ERR_VERSION, FPT_ERR_IMPORT with what to do.
FPT_API TorchSide& torch_side();
/// The plug-in if it has been opened, else null.
TorchSide* opened_torch_side() noexcept;
/// Called while the plug-in is loaded.
FPT_API void provide_torch_side(TorchSide& made) noexcept;

/// The functions of torch by the engine of this process.
[[nodiscard]] FPT_API std::unique_ptr<Runner> torch_functions(bool same_layout);

}  // namespace fpt
