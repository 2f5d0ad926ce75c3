// SPDX-License-Identifier: MIT
/// The program ftn_pytorch_node, which a rank starts for all ranks of its node, load(..., per="node"), or for those of
/// a GPU, load(..., per="gpu"). Knows nothing of Python.
#include <cstdlib>
#include <cstring>

#include "node/meeting.hpp"
#include "node/node_process.hpp"
#include "node/owner_process.hpp"

int main(int count, char* arguments[]) {
  constexpr int listening = 3;  // as node/meeting.cpp hands it over
  if (count != 3) return EXIT_FAILURE;
  const int ranks = std::atoi(arguments[1]);
  const bool owns_gpu = std::strcmp(arguments[2], fpt::owner_role) == 0;
  return owns_gpu ? fpt::serve_gpu(listening, ranks) : fpt::serve_node(listening, ranks);
}
