// SPDX-License-Identifier: MIT
/// Long texts of descriptions. An fpt_arg is plain data without an owner, so nobody says when its text can go: those
/// that were used last are kept.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ftn_pytorch.h"

namespace fpt {

/// So many texts are kept, however long they are, and as many more as fit into so many bytes.
constexpr std::size_t kept_texts = 256, kept_text_bytes = 16u << 20;

/// Keep a text for `arg`, whose data it becomes; each text is kept once.
void keep_text(fpt_arg& arg, std::string text);

/// What keeps the text of `arg` while it is read; empty where nothing has to. FPT_ERR_FREED if others have taken its
/// place. @param what  names the argument in the error text: "input 2"
FPT_API std::shared_ptr<const std::string> text_owner(const fpt_arg& arg, const std::string& what);

/// True if text_owner() has something to keep.
inline bool has_kept_text(const fpt_arg& arg) noexcept {
  return arg.dtype == FPT_TEXT && arg.data && arg.access != FPT_OUT;
}

}  // namespace fpt
