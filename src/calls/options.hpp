// SPDX-License-Identifier: MIT
/// Options of fpt_module_load(): the one place that knows their names, values and defaults, for every kind of file.
/// Knows nothing of Python.
#pragma once

#include <optional>
#include <string>

#include "arrays/arg.hpp"

namespace fpt {

enum class Backend { automatic, python, direct };

struct Options {
  bool same_layout = false;             ///< axes reach the script in the order of Fortran
  bool safe = false;                    ///< every call is checked like the first two
  int32_t real_dtype = FPT_NONE;        ///< what real arrays are cast to on the way in
  bool copies_inputs = false;           ///< the script gets memory of its own
  bool cast = false;                    ///< results may be narrowed into outputs
  bool weights_only = true;             ///< a file whose reading would run code of it is refused
  bool training = false;                ///< a saved model predicts in training mode
  bool record = false;                  ///< calls of a script are recorded and made again without Python
  bool background = false;              ///< a script trains in a process of its own
  std::optional<int32_t> communicator;  ///< handle of Fortran of the MPI communicator whose ranks train together
  int32_t flags = 0;                    ///< FPT_USE_...
  Backend backend = Backend::automatic;
  std::string device;           ///< empty for the host
  std::string fallback;         ///< file that answers where a server does not, empty for none
  std::string compile;          ///< mode of torch.compile, empty for not at all
  std::string compile_backend;  ///< empty without `compile`

  /// Element type in which the script wants an array of type `dtype`.
  int32_t wanted_dtype(int32_t dtype) const noexcept { return cast_dtype(dtype, real_dtype); }
};

/// Options by name and value; FTN_PYTORCH_MODE is the default of "mode". FPT_ERR_ARGUMENT says what is valid.
Options parse_options(Args options);

}  // namespace fpt
