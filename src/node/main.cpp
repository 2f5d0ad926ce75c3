// SPDX-License-Identifier: MIT
/// The program ftn_pytorch_node, which a rank starts for all ranks of its node: load(..., per="node"). Knows nothing of
/// Python.
#include <cstdlib>

#include "node/node_process.hpp"

int main(int count, char* arguments[]) {
  constexpr int listening = 3;  // as node/meeting.cpp hands it over
  return count == 2 ? fpt::serve_node(listening, std::atoi(arguments[1])) : EXIT_FAILURE;
}
