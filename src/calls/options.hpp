// SPDX-License-Identifier: MIT
/// Options of fpt_module_load() that the core or the direct path needs. Others are those of what Python runs, see
/// runners/options.py, which gets all of them. Knows nothing of Python.
#pragma once

#include <optional>
#include <string>

#include "arrays/arg.hpp"

namespace fpt {

enum class Backend { automatic, python, direct };
/// Which processes load a file: each rank, or one for all ranks of a node or of a GPU.
enum class Per { rank, node, gpu };

struct Options {
  bool same_layout = false;       ///< axes reach the script in the order of Fortran
  bool safe = false;              ///< every call is checked like the first two
  int32_t real_dtype = FPT_NONE;  ///< what real arrays are cast to on the way in
  bool copies_inputs = false;     ///< the script gets memory of its own
  bool cast = false;              ///< results may be narrowed into outputs
  bool training = false;          ///< a saved model predicts in training mode
  int32_t flags = 0;              ///< FPT_USE_...
  Backend backend = Backend::automatic;
  Per per = Per::rank;
  std::string device;                   ///< empty for the host
  std::optional<int32_t> communicator;  ///< handle of Fortran of the ranks that train together

  /// Element type in which the script wants an array of type `dtype`.
  int32_t wanted_dtype(int32_t dtype) const noexcept { return cast_dtype(dtype, real_dtype); }
};

/// Options by name and value; FTN_PYTORCH_MODE is the default of "mode". FPT_ERR_ARGUMENT says what is valid.
[[nodiscard]] Options parse_options(Args options);

/// FPT_ERR_ARGUMENT for an option of what Python runs, unless it asks for nothing. @param file  named in the text
/// @param is_of_ranks  false: communicator= is such an option, too
void refuse_python_options(const std::string& file, Args options, bool is_of_ranks);

}  // namespace fpt
