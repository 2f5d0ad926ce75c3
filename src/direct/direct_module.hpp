// SPDX-License-Identifier: MIT
/// A saved model that the plug-in runs. Knows nothing of Python, and needs no lock: the plug-in has its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "direct/archive.hpp"
#include "direct/direct_results.hpp"
#include "ftn_pytorch.h"

namespace fpt {

class DirectModule {
 public:
  /// @param file     absolute path
  /// @param options  those of fpt_module_load(); FPT_ERR_ARGUMENT for what makes no sense
  static std::unique_ptr<DirectModule> load(const std::string& file, ModelKind kind, const fpt_arg* options,
                                            int32_t noptions, int32_t nconfig);
  ~DirectModule();
  DirectModule(const DirectModule&) = delete;
  DirectModule& operator=(const DirectModule&) = delete;

  void reload();
  /// "%r" in the name of a file becomes the rank.
  void save(const std::string& file);
  /// FPT_ERR_NO_CHECKPOINT where nothing is.
  /// @param from_checkpoint  what only folders of checkpoints have is asked for: a step, or the one before a damaged one
  void restore(const std::string& file, bool from_checkpoint);
  [[noreturn]] static void refuse_checkpoints();
  bool has(const std::string& name);

  /// Call a method; no name means forward. Either outputs or results may be absent.
  void call(std::string_view name, fpt_arg* inputs, int32_t ninputs, fpt_arg* outputs, int32_t noutputs,
            fpt_results* results, int32_t flags);
  /// Call forward; its one tensor.
  Tensor forward(fpt_arg* inputs, int32_t ninputs, int32_t flags);
  void train(fpt_arg* inputs, int32_t ninputs, fpt_arg* targets, int32_t ntargets, int32_t& completed, double& loss);

 private:
  DirectModule() = default;
  void call_plugin(std::string_view name, const fpt_arg* inputs, int32_t ninputs, int32_t flags, DirectAnswer& answer);
  void create_optimizer(std::string_view name, fpt_arg* settings, int32_t count);

  fpt_direct_module* module_ = nullptr;
  std::string name_, forward_label_, train_label_;  // for texts
  bool same_layout_ = false, casts_ = false;
};

bool is_direct_module(int64_t handle) noexcept;
DirectModule& direct_module_at(int64_t handle);
int64_t insert_direct_module(std::unique_ptr<DirectModule> module);
void free_direct_module(int64_t handle) noexcept;

}  // namespace fpt
