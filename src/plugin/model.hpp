// SPDX-License-Identifier: MIT
/// What a loaded model can do, whatever its format; one class per format implements it.
#pragma once

#include "base/rank.hpp"
#include "calls/options.hpp"
#include "calls/runner.hpp"
#include "direct/optimizer_settings.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

class DirectAnswer;

/// A file and the options of its load.
struct FPT_API Settings : Options {
  std::string file, name;
  std::optional<at::Device> place;  ///< the device of the options; none for the host

  /// "forward of net"
  std::string label(std::string_view function) const;
};

/// Inputs of one call.
struct Inputs {
  const fpt_arg* args;
  int32_t count;
  /// [count] what stands in place of an argument; undefined for the others. Null: no graph is recorded.
  const at::Tensor* tensors = nullptr;
};

using NamedTensor = std::pair<std::string, at::Tensor>;

/// FPT_ERR_FILE for the name of a checkpoint that says nothing.
void require_name(const std::string& file);
[[noreturn]] void fail_without_checkpoint(const std::string& path);

class FPT_API Model {
 public:
  virtual ~Model() = default;
  /// Which rank this process has: in the communicator of the load, or in the job.
  virtual Rank own_rank() const { return rank(); }
  virtual void reload() = 0;
  virtual void save(const std::string& file) = 0;
  /// Go on from a file; the step of a checkpoint, -1 where it has none.
  /// @param fallback  pass over damaged checkpoints of a folder  @param step  the one of a folder that is wanted
  virtual int64_t restore(const std::string& file, bool fallback, std::optional<int64_t> step) = 0;
  /// Write the next checkpoint of a folder. FPT_ERR_HOOK for formats without.
  virtual void checkpoint(const std::string& folder, int64_t keep, std::optional<int64_t> step);
  /// Copy these to the parameters and buffers, all of them. FPT_ERR_SHAPE, and nothing is changed.
  virtual void assign(std::vector<NamedTensor> values) = 0;
  virtual bool has(std::string_view name) = 0;
  /// Call a method, forward if the name is empty.
  virtual void call(std::string_view name, Inputs inputs, int32_t flags, DirectAnswer& answer) = 0;
  /// The parameters, by name. FPT_ERR_HOOK for formats without.
  virtual void parameters(DirectAnswer& answer) = 0;
  virtual void create_optimizer(const OptimizerSettings& settings) = 0;
  virtual Training train(Inputs inputs, Inputs targets) = 0;

 protected:
  /// FPT_ERR_HOOK for what only folders of checkpoints have.
  static void refuse_checkpoints(const std::string& file, bool fallback, std::optional<int64_t> step);
  /// The only target; FPT_ERR_SIGNATURE. @param label  of the training function, for texts
  static const fpt_arg& single_target(Inputs targets, const std::string& label);
};

}  // namespace fpt::direct
