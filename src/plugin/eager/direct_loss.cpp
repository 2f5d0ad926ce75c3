// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_loss.hpp"

#include <utility>
#include <vector>

#include "arrays/scalar.hpp"
#include "calls/python_side.hpp"
#include "direct/object_arguments.hpp"
#include "plugin/eager/losses.hpp"

namespace fpt::direct {
namespace {

bool is_text(const fpt_arg& arg) noexcept { return arg.dtype == FPT_TEXT && arg.status == FPT_OK; }

}  // namespace

DirectLoss::DirectLoss(std::string kind, std::string_view function, std::string reduction)
    : kind_(std::move(kind)), function_(concat("nn.functional.", function)), reduction_(std::move(reduction)) {}

std::unique_ptr<Runner> DirectLoss::make(Args inputs) {
  if (inputs.count < 1 || inputs.count > 2 || !is_text(inputs[0])) return nullptr;
  const std::string kind(text_of(inputs[0]));
  const std::string_view function = function_of_loss(kind);
  if (function.empty()) return nullptr;
  std::string reduction;
  if (inputs.count == 2) {
    if (!is_text(inputs[1]) || inputs[1].name != std::string_view("reduction")) return nullptr;
    reduction = text_of(inputs[1]);
  }
  return std::unique_ptr<Runner>(new DirectLoss(kind, function, std::move(reduction)));
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
