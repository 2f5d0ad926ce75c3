// SPDX-License-Identifier: MIT
/// The program ftn_pytorch_node, which a rank starts for all ranks of its node, load(..., per="node"), or for those of
/// a GPU, load(..., per="gpu"). Knows nothing of Python.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "node/descriptor.hpp"
#include "node/meeting.hpp"
#include "node/node_process.hpp"
#include "node/node_worker.hpp"
#include "node/owner_process.hpp"

int main(int count, char* arguments[]) {
  constexpr int listening = 3;  // as node/meeting.cpp hands it over
  if (count != 3) return EXIT_FAILURE;
  try {
    std::signal(SIGPIPE, SIG_IGN);  // a rank that is gone is seen where it is waited for
    fpt::close_all_above(listening);
    fpt::keep_warnings();
    const int ranks = std::atoi(arguments[1]);
    if (std::strcmp(arguments[2], fpt::owner_role) == 0)
      fpt::serve_gpu(listening, ranks);
    else
      fpt::serve_node(listening, ranks);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ftn_pytorch_node: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
