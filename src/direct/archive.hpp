// SPDX-License-Identifier: MIT
/// What kind of saved model a file is, told by its closing record, or by the names in its zip directory. Nothing is
/// unpacked.
#pragma once

#include <string>

#include "ftn_pytorch.h"

namespace fpt {

enum class ModelKind {
  other,        ///< no file, no archive, a damaged one, or an archive of another kind
  torchscript,  ///< written by torch.jit.save
  recording,    ///< saved recording, a checkpoint with tapes, written by ftn_pytorch.save_recording
  package       ///< AOTInductor package, written by torch._inductor.aoti_compile_and_package
};

/// FPT_ERR_FORMAT for a model that unpacks to far more than it is, before anything of it is.
[[nodiscard]] ModelKind kind_of_model(const std::string& path);

/// FPT_ERR_FILE for what is there and no regular file: reading from a pipe would wait. FPT_ERR_FORMAT as above.
FPT_API void require_readable(const std::string& path);

}  // namespace fpt
