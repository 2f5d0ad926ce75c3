// SPDX-License-Identifier: MIT
/// Functions of a BLAS or LAPACK, tried on small numbers as torch would call them. Knows nothing of Python.
#pragma once

#include <string>
#include <vector>

#include "base/program_libraries.hpp"

namespace fpt {

/// What is wrong with the first function that torch could not use: "sgemm_ of FILE takes integers of 8 bytes". Empty if
/// all that are known here give the right numbers; complex dot products are not tried, since only torch knows how it
/// calls them.
///
/// A forked child tries them, so a function of another kind can crash, stop or wait there.
std::string try_blas(const std::vector<ProgramFunction>& functions);

}  // namespace fpt
