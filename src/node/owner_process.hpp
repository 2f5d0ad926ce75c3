// SPDX-License-Identifier: MIT
/// The process that owns a GPU for the ranks of a node that use it: it loads a file once and computes for all of them.
/// Knows nothing of Python.
#pragma once

namespace fpt {

/// Serve the ranks that connect, until they are gone. What the program ftn_pytorch_node does for load(..., per="gpu").
/// @param listening  socket at which it listens, taken over
/// @param ranks      so many will come
void serve_gpu(int listening, int ranks);

}  // namespace fpt
