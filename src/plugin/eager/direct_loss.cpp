// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_loss.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "arrays/scalar.hpp"
#include "calls/python_side.hpp"
#include "direct/object_arguments.hpp"

namespace fpt::direct {
namespace {

constexpr std::pair<std::string_view, std::string_view> loss_functions[] = {
    {"MSELoss", "mse_loss"},
    {"L1Loss", "l1_loss"},
    {"SmoothL1Loss", "smooth_l1_loss"},
    {"HuberLoss", "huber_loss"},
    {"CrossEntropyLoss", "cross_entropy"},
    {"NLLLoss", "nll_loss"},
    {"KLDivLoss", "kl_div"},
    {"BCELoss", "binary_cross_entropy"},
    {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits"}};

bool is_text(const fpt_arg& arg) noexcept { return arg.dtype == FPT_TEXT && arg.status == FPT_OK; }

}  // namespace

DirectLoss::DirectLoss(std::string kind, std::string_view function, std::string reduction)
    : kind_(std::move(kind)), function_(concat("nn.functional.", function)), reduction_(std::move(reduction)) {}

std::unique_ptr<Runner> DirectLoss::make(Args inputs) {
  if (inputs.count < 1 || inputs.count > 2 || !is_text(inputs[0])) return nullptr;
  const std::string kind(text_of(inputs[0]));
  const auto* const known = std::find_if(std::begin(loss_functions), std::end(loss_functions),
                                         [&](const auto& each) { return each.first == kind; });
  if (known == std::end(loss_functions)) return nullptr;
  std::string reduction;
  if (inputs.count == 2) {
    if (!is_text(inputs[1]) || inputs[1].name != std::string_view("reduction")) return nullptr;
    reduction = text_of(inputs[1]);
  }
  return std::unique_ptr<Runner>(new DirectLoss(kind, known->second, std::move(reduction)));
}

void DirectLoss::run(const CallRequest& request) {
  if (request.function != "forward" || request.inputs.count != 2) return python().run(request);
  std::vector<fpt_arg> args(request.inputs.begin(), request.inputs.end());
  if (!reduction_.empty()) args.push_back(text_argument(reduction_, "reduction"));
  CallRequest of_torch = request.with(args);
  of_torch.function = function_;
  functions_.run(of_torch);
}

std::unique_ptr<Runner> DirectLoss::make_python() {
  std::vector<fpt_arg> args{text_argument(kind_)};
  if (!reduction_.empty()) args.push_back(text_argument(reduction_, "reduction"));
  return create(*python_side().torch_functions(false), "ftn_pytorch_loss", args);
}

}  // namespace fpt::direct
