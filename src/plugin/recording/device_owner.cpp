// SPDX-License-Identifier: MIT
#include "plugin/recording/device_owner.hpp"

#include <ATen/core/Generator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/ScopeExit.h>
#include <torch/version.h>

#include <exception>
#include <map>

#include "base/cuda_context.hpp"

namespace c10::cuda {
// missing in a torch without CUDA, as all that this file calls of torch for CUDA: see CMakeLists.txt
__attribute__((weak)) CUDAStream getCurrentCUDAStream(DeviceIndex gpu);
}  // namespace c10::cuda

namespace fpt::direct {
namespace {

/// False for a graph whose capture torch has not brought to an end: it then takes part in it for ever.
bool has_ended(at::cuda::CUDAGraph& graph) {
  try {
    graph.pool();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

/// What throws was not part of the capture any more.
template <class Action>
void attempt(const Action& action) {
  try {
    action();
  } catch (const c10::Error&) {
    // nothing is left to be undone
  }
}

}  // namespace

OwnedGraph::~OwnedGraph() {
  const std::lock_guard alone(owner_.mutex_);
  graph_.reset();
  if (pool_ && pool_ == owner_.pool_ && --owner_.graphs_ == 0) owner_.pool_.reset();
}

bool OwnedGraph::can_be_replayed() const { return failures_ == owner_.failures_; }

bool DeviceOwner::is_possible() noexcept { return &c10::cuda::getCurrentCUDAStream != nullptr; }

DeviceOwner& DeviceOwner::of(c10::Device gpu) {
  static std::mutex mutex;
  // never freed: graphs of whatever lives to the end of the process go through it
  static auto& known = *new std::map<c10::DeviceIndex, DeviceOwner>;
  const std::lock_guard<std::mutex> alone(mutex);
  return known.try_emplace(gpu.index(), gpu).first->second;
}

std::unique_ptr<OwnedGraph> DeviceOwner::capture(bool draws, c10::function_ref<void()> body) {
  TORCH_CHECK(!draws || recording::others_may_draw || threads_with_cuda() < 2,
              "it draws random numbers, and several threads of "
              "the program call: torch ",
              TORCH_VERSION, " then fails in the others, from 2.12 on it does not");
  std::unique_ptr<OwnedGraph> made;  // let go without the lock, where it fails
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream();
  current.synchronize();
  const std::lock_guard alone(mutex_);
  if (!stream_) stream_ = c10::cuda::getStreamFromPool(false, gpu_.index()).unwrap();
  if (!pool_) pool_ = at::cuda::graph_pool_handle();
  made = std::make_unique<OwnedGraph>(*this, failures_);
  made->pool_ = pool_;
  ++graphs_;
  const c10::StreamGuard inside(*stream_);
  std::exception_ptr failure;
  bool has_begun = false;
  try {
    begin(made->graph_, draws);
    has_begun = true;
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    if (has_begun) made->graph_.capture_end();  // in any case: the stream leaves the capture
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (!has_ended(made->graph_)) recover(has_begun);
  if (failure) std::rethrow_exception(failure);
  // a capture writes numbers for torch's generator on its stream, and the first launch does so on the caller's
  c10::Event captured(c10::DeviceType::CUDA);
  captured.record(*stream_);
  captured.block(current.unwrap());
  return made;
}

/// A graph that draws nothing gets another state of torch's generator, which nobody else sees, where others could not
/// draw meanwhile.
void DeviceOwner::begin(at::cuda::CUDAGraph& graph, bool draws) {
  at::Generator random = at::cuda::detail::getDefaultCUDAGenerator(gpu_.index());
  std::unique_lock<std::mutex> alone(random.mutex(), std::defer_lock);  // as kernels that draw
  const bool is_spared = !draws && !recording::others_may_draw;
  at::Generator own;
  if (is_spared) {
    alone.lock();
    own = random.graphsafe_get_state();
    random.graphsafe_set_state(random.clone());
  }
  const auto give_back = c10::make_scope_exit([&] {
    if (is_spared) random.graphsafe_set_state(own);
  });
  graph.capture_begin(*pool_, cudaStreamCaptureModeThreadLocal);  // what other threads call does not end it
}

/// The pool and the generator would take part in the capture from now on. Later graphs have another pool, and torch's
/// allocator is told that this one has ended, or it would keep all memory that it has cached. The generator gets a new
/// state with the values of the old one, from which graphs of before would go on drawing.
void DeviceOwner::recover(bool has_begun) noexcept {
  if (has_begun) {
    attempt([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(gpu_.index(), *pool_); });
    attempt([&] { c10::cuda::CUDACachingAllocator::releasePool(gpu_.index(), *pool_); });
  }
  pool_.reset();
  graphs_ = 0;
  attempt([&] {
    at::Generator random = at::cuda::detail::getDefaultCUDAGenerator(gpu_.index());
    random.graphsafe_set_state(random.clone());
  });
  ++failures_;
}

}  // namespace fpt::direct
