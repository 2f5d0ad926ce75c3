// SPDX-License-Identifier: MIT
/// What kind of saved model a file is, told by the names in its zip directory. Nothing is unpacked.
#pragma once

#include <string>

namespace fpt {

enum class ModelKind {
  other,        ///< no file, no archive, a damaged one, or an archive of another kind
  torchscript,  ///< written by torch.jit.save
  package       ///< AOTInductor package, written by torch._inductor.aoti_compile_and_package
};

ModelKind kind_of_model(const std::string& path);

}  // namespace fpt
