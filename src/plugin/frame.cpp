// SPDX-License-Identifier: MIT
#include "plugin/frame.hpp"

#include <c10/util/strides.h>

#include <complex>

#include "arrays/policy.hpp"

namespace fpt::direct {
namespace {

uint32_t version_of(const at::Tensor& tensor) noexcept {
  return tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

std::size_t number_of_this_thread() noexcept {
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t number = threads++;
  return number;
}

}  // namespace

bool Frame::Use::is_changed() const noexcept { return version_of(used()) != version; }

void Frame::begin(const Settings& settings, bool may_keep, bool records) {
  may_keep_ = may_keep;
  records_ = records;
  checking_ = settings.safe || calls_ < checked_calls;
  ++calls_;
  uses_.clear();
}

const at::Tensor& Frame::tensor(const Settings& settings, const fpt_arg& arg, const char* what, int32_t index) {
  const std::size_t position = uses_.size();
  if (caches_.size() <= position) caches_.resize(position + 1);
  const int32_t wanted = settings.wanted_dtype(arg.dtype);
  const bool outlives = may_keep_ && arg.handle != 0;
  const bool converts =
      wanted != arg.dtype || settings.copies_inputs || records_ || outlives || is_misaligned(arg.data, arg.dtype);
  const bool copied = converts && !is_device_memory(arg.data);
  Use& use = uses_.emplace_back();
  use.arg = &arg;
  use.given = copied ? &caches_[position].copied(arg, wanted, settings.same_layout)
                     : &caches_[position].get(arg, settings.same_layout);
  const bool moves = settings.place ? use.given->device() != *settings.place : !use.given->is_cpu();
  if (moves || converts != copied) {
    if (moves && !use.given->is_cpu() && !copies_told_) tell_of_copies(settings, what, index);
    const c10::InferenceMode normal(false);
    const at::ScalarType type = copied ? use.given->scalar_type() : scalar_type_of(wanted);
    use.moved = use.given->to(settings.place.value_or(at::kCPU), type, /*non_blocking=*/false, /*copy=*/true);
  }
  use.version = version_of(use.used());
  use.what = what;
  use.index = index;
  use.copied = copied;
  use.is_own = converts;
  if (copied) use.seen = array_of_tensor(*use.given, settings.same_layout);
  return use.used();
}

at::Tensor Frame::tensor(const Settings& settings, const at::Tensor& given, const fpt_arg& arg, const char* what,
                         int32_t index) {
  Use& use = uses_.emplace_back();
  use.arg = &arg;
  use.given = &given;
  use.what = what;
  use.index = index;
  use.is_of_program = true;
  const at::Device device = settings.place.value_or(at::kCPU);
  const at::ScalarType type = scalar_type_of(settings.wanted_dtype(arg.dtype));
  if (settings.copies_inputs || given.device() != device || given.scalar_type() != type)
    use.moved = given.to(device, type, /*non_blocking=*/false, /*copy=*/true);
  use.version = version_of(use.used());
  return use.used();
}

void Frame::tell_of_copies(const Settings& settings, const char* what, int32_t index) {
  copies_told_ = true;
  warn_of_copies(argument_label(what, index, *uses_.back().arg), settings.name, uses_.back().given->device().str(),
                 settings.place ? settings.place->str() : "the host");
}

void Frame::require_unmodified(const std::string& function) const {
  for (const Use& use : uses_)
    if (use.arg->access != FPT_OUT && use.arg->handle == 0 && !use.copied && !use.moved.defined() && use.is_changed())
      refuse_change(argument_label(use.what, use.index, *use.arg), function, "model");
}

void Frame::finish(const std::string& function, at::ArrayRef<at::Tensor> results) {
  require_unmodified(function);
  for (const Use& use : uses_)
    if (use.arg->access == FPT_OUT && use.is_changed()) write_back(use);
  if (checking_ && !reported_) report_kept(function, results);
  wait_for_inputs();
}

uint64_t Frame::changed() const noexcept {
  uint64_t found = 0;
  for (const Use& use : uses_)
    if (!use.copied && !use.moved.defined() && use.index < 64 && use.is_changed()) found |= uint64_t{1} << use.index;
  return found;
}

/// The caller may write into them as soon as the call has returned.
void Frame::wait_for_inputs() const {
  for (const Use& use : uses_)
    if (!use.given->is_cpu()) return wait_for(array_of_tensor(*use.given, false).device);
}

const at::Tensor& Frame::contiguous(const Settings& settings, const fpt_arg& arg, const char* what, int32_t index) {
  const at::Tensor& plain = tensor(settings, arg, what, index);
  // packages of AOTInductor compare the strides of single elements, too
  const c10::DimVector packed = c10::contiguous_strides(plain.sizes());
  if (plain.strides().equals(packed)) return plain;
  Use& use = uses_.back();
  const c10::InferenceMode normal(false);
  use.moved = plain.is_contiguous() ? plain.as_strided(plain.sizes(), packed) : plain.contiguous();
  return use.moved;
}

void Frame::finish_compiled() {
  for (const Use& use : uses_)
    if (use.arg->access == FPT_OUT) write_back(use);
  wait_for_inputs();
}

void Frame::write_back(const Use& use) {
  if (use.is_of_program) return;  // changed itself, unless it was converted, which is a copy in torch, too
  if (use.moved.defined()) tensor_on(array_of_tensor(*use.given, false), false).copy_(use.moved.detach());
  const bool is_there = use.copied && use.given->const_data_ptr() == use.seen.data;  // else pointed elsewhere (x.set_)
  if (is_there) copy_back(use.seen, array_of(*use.arg));
}

void Frame::report_kept(const std::string& function, at::ArrayRef<at::Tensor> results) {
  for (const Use& use : uses_) {
    const at::Tensor& tensor = *use.given;
    const bool returned = std::any_of(results.begin(), results.end(), [&](const at::Tensor& result) {
      return result.defined() && result.storage().unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl();
    });
    if (use.copied || use.is_of_program || use.moved.defined() || returned || is_unshared(tensor)) continue;
    reported_ = true;
    warn_of_kept(argument_label(use.what, use.index, *use.arg), function, "x.clone()");
  }
}

FramePool::~FramePool() {
  for (auto& place : places_) delete place.load();
}

FramePool::Lease::Lease(FramePool& pool)
    : place_(pool.places_[number_of_this_thread() % pool.places_.size()]),
      frame_(place_.exchange(nullptr, std::memory_order_acquire)) {
  if (!frame_) frame_ = new Frame;
}

FramePool::Lease::~Lease() {
  frame_->abandon();
  Frame* none = nullptr;
  // another thread with the same place may have been faster
  if (!place_.compare_exchange_strong(none, frame_, std::memory_order_release)) delete frame_;
}

}  // namespace fpt::direct
