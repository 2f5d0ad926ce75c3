// SPDX-License-Identifier: MIT
/// The objects behind torch_tensor_wrap: arguments, filled in one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "values/tensor.hpp"

namespace fpt {

/// Arguments of a torch_tensor_wrap. Tensors among them are private duplicates.
class ArgumentList {
 public:
  ArgumentList() = default;
  ~ArgumentList() { clear(); }
  ArgumentList(const ArgumentList&) = delete;
  ArgumentList& operator=(const ArgumentList&) = delete;
  void add(const fpt_arg& arg);
  void clear() noexcept;

 private:
  friend class HeldArguments;

  std::vector<fpt_arg> args_;
};

/// The arguments of a list for one call, which may change or free the list.
class HeldArguments {
 public:
  explicit HeldArguments(const ArgumentList& list);
  Args get() noexcept { return {args_.data(), static_cast<int32_t>(args_.size())}; }

 private:
  std::vector<fpt_arg> args_;
  std::vector<TensorPtr> tensors_;
};

ArgumentList& wrap_at(int64_t handle);
void create_wrap(int64_t* handle);
void free_wrap(int64_t handle) noexcept;

}  // namespace fpt
