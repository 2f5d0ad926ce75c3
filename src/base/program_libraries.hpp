// SPDX-License-Identifier: MIT
/// Libraries of the program in whose place torch and Python's modules have others: who provides a name. Knows nothing of
/// Python.
///
/// The loader takes the first definition of a name in the process, so sgemm_ of torch and nc_open of a module would be
/// those of the BLAS and NetCDF that the program is linked with. What is opened with RTLD_DEEPBIND takes its own first.
#pragma once

#include <string>

namespace fpt {

/// RTLD_DEEPBIND, for dlopen of what brings libraries of its own; 0 where there is an obstacle.
int own_names_first();

/// Why libraries cannot take their own names first in this process: FTN_PYTORCH_DEEPBIND is 0, or the program replaces
/// a part of the C or C++ library, of which there must be one. Empty if nothing speaks against it.
const std::string& obstacle_to_own_names();

}  // namespace fpt
