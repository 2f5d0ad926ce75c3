// SPDX-License-Identifier: MIT
/// Exceptions of libtorch, and refusals of the reader of files, as failures of this library.
#pragma once

#include <string>

#include "plugin/torch.hpp"

namespace fpt::direct {

/// Text of an exception of libtorch without frames of C++, which say nothing to those who wrote the model.
std::string message_of(const std::exception& exception);

/// Throw the exception that is being handled as an Error: FPT_ERR_MEMORY for a lack of memory, `status` for all else.
/// `context` opens the text, `end` closes it. An Error stays as it is, and a refusal has status and text of its own.
[[noreturn]] FPT_API void rethrow_as(fpt_status status, const std::string& context, const std::string& end = {});

/// Warnings of torch on this thread are those of this library from then on, once for each text.
void hear_warnings();

/// What `body` returns. Around all that the core calls: an exception of libtorch becomes a failure of this library.
template <class Body>
auto translated(const Body& body) {
  hear_warnings();
  try {
    return body();
  } catch (...) {
    rethrow_as(FPT_ERR_INTERNAL, "libtorch");
  }
}

}  // namespace fpt::direct
