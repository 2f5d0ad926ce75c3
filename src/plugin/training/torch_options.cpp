// SPDX-License-Identifier: MIT
#include "plugin/training/torch_options.hpp"

#include <algorithm>
#include <iterator>

#include "arrays/copy.hpp"
#include "base/error.hpp"
#include "direct/object_arguments.hpp"

namespace fpt::direct {
namespace {

constexpr std::pair<const char*, const char*> classes[] = {{"SGD", "sgd"}, {"Adam", "adam"}, {"AdamW", "adamw"}};

bool is_named(const fpt_arg& arg, std::string_view name) noexcept { return name == arg.name; }

}  // namespace

std::string_view settings_name(std::string_view kind) noexcept {
  const auto* found =
      std::find_if(std::begin(classes), std::end(classes), [kind](const auto& each) { return each.first == kind; });
  return found == std::end(classes) ? "" : found->second;
}

const char* class_name(int32_t kind) noexcept { return classes[kind].first; }

void change_options(OptimizerSettings& settings, Args options) {
  std::vector<fpt_arg> plain;
  for (const fpt_arg& arg : options) {
    if (is_named(arg, "beta1") || is_named(arg, "beta2"))
      fail(FPT_ERR_SIGNATURE, "torch.optim has no option ", arg.name);
    if (!is_named(arg, "betas")) {
      plain.push_back(arg);
      continue;
    }
    const bool is_pair = !is_value(arg) && arg.handle == 0 && arg.rank == 1 && arg.u.array.extents[0] == 2;
    if (!is_pair || !is_real(arg.dtype) || is_half(arg.dtype)) fail(FPT_ERR_SIGNATURE, "betas are no two numbers");
    double betas[2];
    Array target = array_of(arg);
    const Array source = target;
    target.data = betas;
    target.dtype = FPT_FLOAT64;
    set_contiguous(target);
    copy(source, target);
    plain.push_back(real_argument(betas[0], "beta1"));
    plain.push_back(real_argument(betas[1], "beta2"));
  }
  change_settings(settings, settings_name(class_name(settings.kind)), plain);
}

void NamedSettings::append_to(std::vector<fpt_arg>& given) {
  for (const char* name : {"lr", "momentum", "dampening", "weight_decay", "eps"})
    if (const double* value = real_setting(settings_, name)) given.push_back(real_argument(*value, name));
  if (settings_.kind == 0) {
    given.push_back(number_argument(settings_.nesterov != 0, FPT_BOOL, "nesterov"));
  } else {
    given.push_back(number_argument(settings_.amsgrad != 0, FPT_BOOL, "amsgrad"));
    given.push_back(row_argument(betas_, FPT_FLOAT64, 2, "betas"));
  }
}

}  // namespace fpt::direct
