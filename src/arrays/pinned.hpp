// SPDX-License-Identifier: MIT
/// Memory of the program whose pages stay where they are, so that GPUs copy it themselves.
#pragma once

#include "ftn_pytorch.h"

namespace fpt {

/// The bodies of fpt_pin() and fpt_unpin(), whose failures they throw. Nothing is kept here: the driver knows what is
/// pinned.
void pin(const fpt_arg& arg);
void unpin(const fpt_arg& arg);

}  // namespace fpt
