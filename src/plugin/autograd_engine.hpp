// SPDX-License-Identifier: MIT
/// Which of torch's engines of autograd computes gradients.
#pragma once

#include "ftn_pytorch.h"

namespace fpt::direct {

/// To be called before autograd is: the engine that has computed first stays that of libtorch. torch starts its threads
/// for GPUs once in a process, for the engine that computes first. A Python that is started later brings another
/// engine, which has none: gradients on a GPU would fail with an internal assertion of torch.
FPT_API void stay_with_first_engine();

}  // namespace fpt::direct
