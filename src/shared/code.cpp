// SPDX-License-Identifier: MIT
#include "shared/code.hpp"

#include <ATen/ops/from_blob.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <thread>

namespace fpt::recording {
namespace {

/// Where the functions of a package lie. Torch tells it to none but runners of other devices.
struct WithCode : torch::inductor::AOTIModelContainerRunner {
  static const void* code_of(AOTIModelContainerRunner& runner) {
    return reinterpret_cast<const void*>(runner.*(&WithCode::run_func_));
  }
};

void remove_unpacked(PackageLoader& loader) {
  namespace files = std::filesystem;
  Dl_info found{};
  std::error_code failure;
  const files::path folder = files::temp_directory_path(failure);
  if (failure || dladdr(WithCode::code_of(*loader.get_runner()), &found) == 0) return;
  const files::path place = files::path(found.dli_fname).lexically_relative(folder);
  // below a folder of its own in that for temporary files
  if (place.has_parent_path() && *place.begin() != "..") files::remove_all(folder / *place.begin(), failure);
}

}  // namespace

std::unique_ptr<PackageLoader> open_package(const std::string& file, const std::string& model,
                                            c10::DeviceIndex device) {
  const std::size_t runners = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  auto loader = std::make_unique<PackageLoader>(file, model, /*run_single_threaded=*/false, runners, device);
  if (loader->get_metadata()["AOTI_DEVICE_KEY"] == "cpu") remove_unpacked(*loader);
  return loader;
}

Code::Span::Span(const at::Tensor& tensor) : begin(static_cast<const char*>(tensor.const_data_ptr())), end(begin) {
  if (tensor.numel() == 0) return;
  int64_t last = 0;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) last += (tensor.size(axis) - 1) * tensor.stride(axis);
  end += (last + 1) * static_cast<int64_t>(tensor.element_size());
}

Code::Code(std::unique_ptr<PackageLoader> loader, ftr::CodeParts parts)
    : loader_(std::move(loader)), parts_(std::move(parts)) {
  for (const at::Tensor& each : parts_.memory) memory_.emplace_back(each);
}

bool Code::takes(at::ArrayRef<at::Tensor> inputs) const {
  if (!parts_.writes_memory && !parts_.writes_inputs) return true;
  c10::SmallVector<Span, 8> before;
  for (const at::Tensor& input : inputs) {
    const Span span(input);
    const auto meets = [&span](const Span& other) { return span.meets(other); };
    if (std::any_of(memory_.begin(), memory_.end(), meets)) return false;
    if (parts_.writes_inputs && std::any_of(before.begin(), before.end(), meets)) return false;
    before.push_back(span);
  }
  return true;
}

bool Code::run(ftr::Frame& frame, const std::vector<double>& numbers) const {
  std::vector<at::Tensor> given;
  given.reserve(parts_.inputs.size() + memory_.size() + 1);
  for (const int32_t slot : parts_.inputs) given.push_back(frame.slots[static_cast<std::size_t>(slot)].toTensor());
  if (!takes(given)) return false;
  given.insert(given.end(), parts_.memory.begin(), parts_.memory.end());
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  if (!numbers.empty())  // which are only read
    given.push_back(at::from_blob(const_cast<double*>(numbers.data()), {static_cast<int64_t>(numbers.size())},
                                  at::TensorOptions().dtype(at::kDouble)));
  frame.position = std::numeric_limits<std::size_t>::max();  // where it fails, it may have written
  std::vector<at::Tensor> made = loader_->boxed_run(std::move(given));
  TORCH_CHECK_VALUE(made.size() == parts_.results.size(), "its code has ", made.size(), " results, and not ",
                    parts_.results.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    frame.slots[static_cast<std::size_t>(parts_.results[i])] = std::move(made[i]);
  return true;
}

}  // namespace fpt::recording
