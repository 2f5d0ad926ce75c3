// SPDX-License-Identifier: MIT
/// Whose memory is this pointer? CUDA is asked only where a program has brought it along.
#pragma once

namespace fpt {

/// True if `memory` is an address of device memory, which the host cannot read. A process without the CUDA driver has
/// no such addresses.
bool is_device_memory(const void* memory) noexcept;

}  // namespace fpt
