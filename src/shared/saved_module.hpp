// SPDX-License-Identifier: MIT
/// A file of recorded functions as Python runs it. The plug-in implements it, and the extension finds it by one
/// exported function: both are of one build.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ftr/torch.hpp"
#include "shared/device_graph.hpp"
#include "shared/device_turns.hpp"

namespace fpt::recording {

/// A tensor, a number, a text or nothing, with a name where it is given by that.
struct SavedArgument {
  c10::IValue value;
  std::string name;
};
using SavedArguments = std::vector<SavedArgument>;

/// One recording of a function: "x float32 (B, 16)", and the operators in their order.
struct SavedFunction {
  std::string name, arguments;
  std::vector<std::string> operators;
  bool changes_arguments;
};

/// What a file holds, as it was read. The plug-in knows what it is.
using SavedContent = std::shared_ptr<void>;

/// Calls may come from any thread. What they throw, only the plug-in understands: see SavedModules::guarded.
class SavedModule {
 public:
  virtual ~SavedModule() = default;
  virtual std::vector<SavedFunction> functions() const = 0;
  /// Containers with names as dicts or named tuples.
  virtual c10::IValue run(const std::string& name, const SavedArguments& given) = 0;
  /// Places of the arguments that such a call would change in place.
  virtual std::vector<std::size_t> written(const std::string& name, const SavedArguments& given) = 0;
  /// Names of the parameters, and of their arrays; none in a file of an earlier version.
  virtual std::vector<std::pair<std::string, std::string>> parameters() const = 0;
  virtual std::map<std::string, at::Tensor> arrays() const = 0;
  virtual std::vector<std::pair<std::string, double>> numbers() const = 0;
  virtual double number(const std::string& name) const = 0;
  virtual void set_number(const std::string& name, double value) = 0;
  /// A text that the file has about itself: "script", "torch".
  virtual std::string told(const char* name) const = 0;
  /// The present state in a file like the one that was read, or in a checkpoint, of a rank among those that train.
  virtual void write(const std::string& path, bool with_tapes, std::optional<int64_t> step, int rank,
                     int ranks) const = 0;
  virtual SavedContent read(const std::string& path) const = 0;
  virtual void go_on_from(const SavedContent& content, const std::string& path) = 0;
};

/// Averages over ranks: the arguments of ftn_pytorch::all_reduce_mean on the stack become its result.
using Average = std::function<void(c10::Stack&)>;

struct SavedModules {
  const char *version, *torch;
  /// Run a body. 0, or the status of what it has thrown, which is told then.
  int32_t (*guarded)(const std::function<void()>& body);
  /// "FTN_PYTORCH_ERR_SHAPE"
  const char* (*name_of)(int32_t status);
  const char* (*text)();
  /// Call within `guarded`.
  /// @param device  empty for the host  @param starts_generator  torch's generator goes on from its state in the file
  std::unique_ptr<SavedModule> (*open)(const std::string& file, const std::string& device, Average average,
                                       bool starts_generator);
  /// Of a GPU; they are those of the extension, too.
  DeviceTurns& (*turns)(c10::DeviceIndex gpu);
  /// A graph of what `body` launches on a GPU, the current device, by who has the turn. Call within `guarded`. Null
  /// without the headers of CUDA.
  /// @param draws  random numbers of torch's generator
  std::unique_ptr<DeviceGraph> (*capture)(c10::DeviceIndex gpu, bool draws, const std::function<void()>& body);
};

constexpr const char* saved_modules_symbol = "fpt_saved_modules_get";

}  // namespace fpt::recording
