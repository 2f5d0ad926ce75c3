// SPDX-License-Identifier: MIT
/// A CUDA stream of the program as the one that libtorch works on.
#pragma once

#include "plugin/torch.hpp"

namespace fpt::direct {

/// Let libtorch work on a stream, on this thread until leave_stream() gets what this returns. Not nested.
/// FPT_ERR_DEVICE if this libtorch knows no CUDA.
/// @param stream  cudaStream_t, null for the default one
/// @param device  its GPU; none for the current one
/// @param waits   whether calls wait for what they have started
void* enter_stream(void* stream, const std::optional<at::Device>& device, bool waits);
void leave_stream(void* entered) noexcept;

/// Whether calls of this thread wait; true outside of streams.
bool calls_wait() noexcept;

}  // namespace fpt::direct
