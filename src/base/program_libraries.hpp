// SPDX-License-Identifier: MIT
/// Libraries of the program in whose place torch and Python's modules have others: who provides a name. Knows nothing
/// of Python.
///
/// The loader takes the first definition of a name in the process, so sgemm_ of torch and nc_open of a module would be
/// those of the BLAS and NetCDF that the program is linked with. What is opened with RTLD_DEEPBIND takes its own first.
#pragma once

#include <string>
#include <vector>

#include "ftn_pytorch.h"

namespace fpt {

/// RTLD_DEEPBIND, for dlopen of what brings libraries of its own; 0 where there is an obstacle.
FPT_API int own_names_first();

/// Why libraries cannot take their own names first in this process: FTN_PYTORCH_DEEPBIND is 0, or the program replaces
/// a part of what must be one for all: the C and C++ library, and OpenMP. Empty if nothing speaks against it.
FPT_API const std::string& obstacle_to_own_names();

/// FPT_ERR_VERSION for a library that was opened and has found another one than this.
[[noreturn]] FPT_API void refuse_foreign(const std::string& file);

/// A function of the program that torch, or a module of Python, has under the same name.
struct ProgramFunction {
  const char* name;  ///< "sgemm_"
  void* address;
  std::string file;  ///< of the library, or of the program itself
};

/// Those of BLAS and LAPACK, which torch has, that the loader finds now.
FPT_API std::vector<ProgramFunction> functions_of_torch();

/// Those of HDF5 and NetCDF, which modules of Python bring.
FPT_API std::vector<ProgramFunction> functions_of_modules();

/// Of what gives memory to the program.
FPT_API std::string file_of_malloc();

/// What torch could not use in the BLAS or LAPACK of the program, "sgemm_ of FILE takes integers of 8 bytes"; empty if
/// nothing. Tries it once, in a process of its own.
FPT_API const std::string& unusable_blas();

/// Before torch is opened so that it does not take its own names first: FPT_ERR_LIBRARY where it could not compute by
/// the BLAS or LAPACK of the program.
/// @param why  torch does not take its own names first
FPT_API void require_usable_blas(const std::string& why);

/// What numbers of torch have shown, computed where the program has a BLAS or LAPACK: FPT_ERR_LIBRARY with the files
/// that torch may have taken functions of, or one warning of a job that they are right and may be slow.
/// @param wrong  the function of torch with wrong numbers; empty if there is none
/// @param why    torch does not take its own names first; empty where it does
FPT_API void judge_numbers(const std::string& wrong, const std::string& why);

}  // namespace fpt
