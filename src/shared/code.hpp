// SPDX-License-Identifier: MIT
/// Code of torch's compiler, which computes what the operators of a tape do.
#pragma once

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <memory>
#include <string>

#include "ftr/tape.hpp"

namespace fpt::recording {

using PackageLoader = torch::inductor::AOTIModelPackageLoader;

/// A model of a package, which several threads may run. Throws what torch says of a file that it cannot load. Torch
/// unpacks code to load it; that of the host is mapped then, and its files are removed: a program may end before it
/// lets go of the model.
std::unique_ptr<PackageLoader> open_package(const std::string& file, const std::string& model, c10::DeviceIndex device);

class Code {
 public:
  Code(std::unique_ptr<PackageLoader> loader, ftr::CodeParts parts);

  /// Compute in place of the operators, on a frame whose inputs are set. False, and nothing was done, where takes() is.
  bool run(ftr::Frame& frame, const std::vector<double>& numbers) const;
  /// False where a call would write memory that it reads through another tensor: code does that at another time.
  bool takes(at::ArrayRef<at::Tensor> inputs) const;

 private:
  struct Span {
    const char *begin, *end;
    explicit Span(const at::Tensor& tensor);
    bool meets(const Span& other) const noexcept { return begin < other.end && other.begin < end; }
  };

  std::unique_ptr<PackageLoader> loader_;
  ftr::CodeParts parts_;
  std::vector<Span> memory_;
};

}  // namespace fpt::recording
