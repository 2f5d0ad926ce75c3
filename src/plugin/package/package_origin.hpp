// SPDX-License-Identifier: MIT
/// Where a package of AOTInductor comes from, and whether it fits: asked before any code of it is loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugin/torch.hpp"
#include "shared/code.hpp"

namespace fpt::direct {

struct PackageOrigin {
  std::string model;                 ///< its name in the package
  std::optional<at::Device> device;  ///< that it was compiled for, other than the host
};

/// FPT_ERR_FORMAT for a file of another torch or none at all, FPT_ERR_DEVICE for another processor or device than there
/// is, or than `wanted`.
/// @param model  the one that is meant; empty: "model", or the only one
PackageOrigin origin_of_package(const std::string& file, const std::optional<at::Device>& wanted,
                                const std::string& model = {});

using recording::PackageLoader;

/// torch's own loader and runner of the code; FPT_ERR_FORMAT for what it cannot load.
std::unique_ptr<PackageLoader> load_code(const std::string& file, const PackageOrigin& origin);

/// Version of the libtorch that runs, which may be another release than that of the build.
std::string torch_here();

/// What to do about a package that does not fit.
inline constexpr const char* compile_again =
    "compile it again on this machine with torch._inductor.aoti_compile_and_package or ftn_pytorch export";

}  // namespace fpt::direct
