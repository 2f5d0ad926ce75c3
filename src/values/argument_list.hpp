// SPDX-License-Identifier: MIT
/// The objects behind torch_tensor_wrap: arguments, filled in one by one; and tensors as arguments of one call.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
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
  Args get() noexcept { return args_; }

 private:
  std::vector<fpt_arg> args_;
  std::vector<TensorPtr> tensors_;
};

/// Tensors as arguments of a call, with handles that end with this.
class TensorArguments {
 public:
  TensorArguments() = default;
  ~TensorArguments() {
    for (const int64_t handle : handles_) free_tensor(handle);
  }
  TensorArguments(const TensorArguments&) = delete;
  TensorArguments& operator=(const TensorArguments&) = delete;
  fpt_arg add(TensorPtr tensor) {
    handles_.push_back(insert_unscoped(std::move(tensor)));
    return tensor_argument(handles_.back());
  }

 private:
  std::vector<int64_t> handles_;
};

ArgumentList& wrap_at(int64_t handle);
void create_wrap(int64_t* handle);
void free_wrap(int64_t handle) noexcept;

}  // namespace fpt
