// SPDX-License-Identifier: MIT
/// The process that loads a file once for all ranks of a node, and forks a worker for each of them. Knows nothing of
/// Python.
#pragma once

namespace fpt {

/// Serve the ranks that connect, until they are gone. What the program ftn_pytorch_node does.
/// @param listening  socket at which it listens, taken over
/// @param ranks      so many will come
void serve_node(int listening, int ranks);

}  // namespace fpt
