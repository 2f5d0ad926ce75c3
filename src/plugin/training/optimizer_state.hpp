// SPDX-License-Identifier: MIT
/// The state of an optimizer as an extra file of a TorchScript archive, which the Python runner reads and writes as
/// well (runners/models/optimizer_state.py): what torch.save writes of
///
///     {"class": "Adam", "names": ["0.weight", ...],
///      "state": {0: {"step": tensor, "exp_avg": tensor, "exp_avg_sq": tensor}, ...},
///      "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), ..., "params": [0, ...]}]}
///
/// The last two are what state_dict of torch.optim tells, and the names are those of the parameters in the model.
#pragma once

#include "plugin/training/optimizer.hpp"

namespace fpt::direct {

constexpr const char* optimizer_file = "ftn_pytorch_optimizer";

FPT_API std::string bytes_of_state(const Optimizer& optimizer);

/// An optimizer for the parameters of a model with the state of a file. FPT_ERR_FORMAT where it is damaged or of
/// another model.
FPT_API std::unique_ptr<Optimizer> optimizer_of_state(const std::string& bytes,
                                                      const std::vector<NamedTensor>& parameters,
                                                      const std::string& file);

/// FPT_ERR_FORMAT for what a file has that the model has not.
[[noreturn]] void fail_without_parameter(std::string_view name);
[[noreturn]] void fail_of_moment(std::string_view moment, const std::string& parameter);

/// The value of a text that 0.2.0 has written. FPT_ERR_FORMAT where it is damaged.
[[nodiscard]] c10::IValue value_of_text(const std::string& text, const std::vector<NamedTensor>& parameters);

}  // namespace fpt::direct
