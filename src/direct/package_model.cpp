// SPDX-License-Identifier: MIT
#include "model.hpp"

namespace fpt::direct {
std::unique_ptr<Model> load_package(Settings) { fail(FPT_ERR_FORMAT, "packages of AOTInductor are not supported by this version"); }
}  // namespace fpt::direct
