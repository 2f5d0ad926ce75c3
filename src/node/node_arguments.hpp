// SPDX-License-Identifier: MIT
/// Arguments of a call on their way to the process that works for a rank, and what it has written into them on their
/// way back. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/result_names.hpp"
#include "node/places.hpp"
#include "node/segment.hpp"
#include "values/tensor.hpp"

namespace fpt {

/// Arguments that a rank sends. Each array is copied, packed in the order of Fortran.
class SentArguments {
 public:
  /// @param what    names them in messages, "input"
  /// @param places  where arrays are copied to, null: behind their descriptions
  /// FPT_ERR_DEVICE for memory of a device, FPT_ERR_ARGUMENT for a tensor that requires gradients, and for what is
  /// wrong with an argument.
  SentArguments(Args args, const char* what, const CallName& call, SegmentWriter& writer, Places* places = nullptr);

  /// Copy back what the other process may have changed. Only after it has answered.
  void fetch() const;

 private:
  struct Writable {
    Array memory;
    char* sent;
    TensorPtr tensor;  // where it is one of torch
  };

  fpt_arg memory_of(const fpt_arg& arg, const std::string& label, TensorPtr& tensor);
  fpt_arg own(const fpt_arg& arg);
  void send(const fpt_arg& arg, SegmentWriter& writer, Places* places, TensorPtr tensor);

  std::vector<Writable> writable_;
  std::vector<Storage> copies_;
  std::vector<TensorPtr> held_;
};

/// Let an argument describe contiguous memory: its extents stay.
void pack(fpt_arg& arg) noexcept;

/// What was sent, as arguments that describe the memory that is shared. @param places  as they were sent
std::vector<fpt_arg> received_arguments(SegmentReader& reader, Places* places = nullptr);

/// What was sent with torch_copy becomes a copy in this process, for one call: the script may keep and change it.
void make_copies(std::vector<fpt_arg>& args);

}  // namespace fpt
