// SPDX-License-Identifier: MIT
/// The program ftn_pytorch_node, which a rank starts for all ranks of its node, load(..., per="node"), or for those of
/// a GPU, load(..., per="gpu"). Knows nothing of Python.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "node/server.hpp"

int main(int count, char* arguments[]) {
  constexpr int listening = 3;  // as node/meeting.cpp hands it over
  if (count != 3) return EXIT_FAILURE;
  try {
    std::signal(SIGPIPE, SIG_IGN);  // a rank that is gone is seen where it is waited for
    fpt::run_server(listening, static_cast<std::size_t>(std::atoi(arguments[1])), arguments[2]);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ftn_pytorch_node: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
