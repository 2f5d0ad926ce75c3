// SPDX-License-Identifier: MIT
/// Plain values as the pickle that torch.save writes of them. torch's own writer gives typed lists and some element
/// types names that torch.load(weights_only=True) does not read.
#pragma once

#include <string>
#include <vector>

#include "plugin/torch.hpp"

namespace fpt::direct {

struct WrittenPickle {
  std::string bytes;
  std::vector<c10::Storage> storages;  ///< as many as were referred to; each is named by its place in this list
};

/// The pickle of dicts, lists, tuples, texts, numbers, None and dense tensors. A storage is there once, however many
/// tensors share it. Nothing of autograd is written.
///
/// FPT_ERR_RESULT_TYPE for other values, and for tensors of two element types that share a storage, as in Python.
[[nodiscard]] WrittenPickle write_plain_pickle(const c10::IValue& value);

}  // namespace fpt::direct
