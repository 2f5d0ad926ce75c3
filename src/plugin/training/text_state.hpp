// SPDX-License-Identifier: MIT
/// The state of an optimizer as 0.2.0 wrote it: lines, then the bytes of the tensors one after the other.
///
///     ftn_pytorch optimizer 1
///     kind adam
///     lr 0x1.0624dd2f1a9fcp-10
///     (momentum, weight_decay, beta1, beta2, eps, nesterov, amsgrad likewise)
///     parameter 0.weight 25
///     first float32 64,16
///     second float32 64,16
///     end
#pragma once

#include "plugin/model.hpp"

namespace fpt::direct {

[[nodiscard]] bool is_text_state(std::string_view bytes) noexcept;

/// The same as the value that is written now, see optimizer_state.hpp. FPT_ERR_FORMAT where it is damaged.
[[nodiscard]] c10::IValue value_of_text(const std::string& text, const std::vector<NamedTensor>& parameters);

}  // namespace fpt::direct
