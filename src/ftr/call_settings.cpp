// SPDX-License-Identifier: MIT
#include "ftr/call_settings.hpp"

#include <ATen/Context.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "ftr/plain_values.hpp"
#include "ftr/saved_argument.hpp"

namespace ftr {
namespace {

using at::Context;
using Precision = at::Float32Precision;
using Values = CallSettings::Values;

enum class Kind : uint8_t { logical, precision, reduction, dtype };

/// One setting, as a number; `name` is that of the file.
struct Setting {
  const char* name;
  Kind kind;
  bool is_of_gpu;
  int64_t (*get)(Context&);
  void (*set)(Context&, int64_t);
};

template <at::Float32Backend backend, at::Float32Op of>
constexpr Setting precision(const char* name) {
  return {name, Kind::precision, backend == at::Float32Backend::CUDA,
          [](Context& torch) { return static_cast<int64_t>(torch.float32Precision(backend, of)); },
          [](Context& torch, int64_t value) { torch.setFloat32Precision(backend, of, static_cast<Precision>(value)); }};
}

template <auto get, auto set>
constexpr Setting logical(const char* name, bool is_of_gpu) {
  return {name, Kind::logical, is_of_gpu, [](Context& torch) -> int64_t { return (torch.*get)(); },
          [](Context& torch, int64_t value) { (torch.*set)(value != 0); }};
}

template <auto get, auto set>
constexpr Setting reduction(const char* name) {
  return {name, Kind::reduction, true, [](Context& torch) { return static_cast<int64_t>((torch.*get)()); },
          [](Context& torch, int64_t value) { (torch.*set)(value == 0, value != 2); }};
}

/// saved/kernel_settings.py has the same names.
constexpr std::array table = {
    Setting{"default_dtype", Kind::dtype, false,
            [](Context&) { return static_cast<int64_t>(c10::get_default_dtype_as_scalartype()); },
            [](Context&, int64_t value) {
              c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<at::ScalarType>(value)));
            }},
    Setting{"deterministic", Kind::logical, false,
            [](Context& torch) -> int64_t { return torch.deterministicAlgorithms(); },
            [](Context& torch, int64_t value) {
              torch.setDeterministicAlgorithms(value != 0, torch.deterministicAlgorithmsWarnOnly());
            }},
    Setting{"deterministic_warn_only", Kind::logical, false,
            [](Context& torch) -> int64_t { return torch.deterministicAlgorithmsWarnOnly(); },
            [](Context& torch, int64_t value) {
              torch.setDeterministicAlgorithms(torch.deterministicAlgorithms(), value != 0);
            }},
    logical<&Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn>("mkldnn", false),
    logical<&Context::deterministicMkldnn, &Context::setDeterministicMkldnn>("mkldnn_deterministic", false),
    precision<at::Float32Backend::MKLDNN, at::Float32Op::MATMUL>("mkldnn_matmul_fp32"),
    precision<at::Float32Backend::MKLDNN, at::Float32Op::CONV>("mkldnn_conv_fp32"),
    precision<at::Float32Backend::MKLDNN, at::Float32Op::RNN>("mkldnn_rnn_fp32"),
    precision<at::Float32Backend::CUDA, at::Float32Op::MATMUL>("cuda_matmul_fp32"),
    precision<at::Float32Backend::CUDA, at::Float32Op::CONV>("cuda_conv_fp32"),
    precision<at::Float32Backend::CUDA, at::Float32Op::RNN>("cuda_rnn_fp32"),
    reduction<&Context::allowFP16ReductionCuBLAS, &Context::setAllowFP16ReductionCuBLAS>("fp16_reduction"),
    reduction<&Context::allowBF16ReductionCuBLAS, &Context::setAllowBF16ReductionCuBLAS>("bf16_reduction"),
    logical<&Context::allowFP16AccumulationCuBLAS, &Context::setAllowFP16AccumulationCuBLAS>("fp16_accumulation", true),
    logical<&Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN>("cudnn", true),
    logical<&Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN>("cudnn_benchmark", true),
    logical<&Context::deterministicCuDNN, &Context::setDeterministicCuDNN>("cudnn_deterministic", true),
};

/// Whether two numbers mean the same: there are two for a computation with all digits.
bool is_same(const Setting& setting, int64_t one, int64_t other) {
  const auto meant = [](int64_t value) {
    return value == static_cast<int64_t>(Precision::NONE) ? static_cast<int64_t>(Precision::IEEE) : value;
  };
  return one == other || (setting.kind == Kind::precision && meant(one) == meant(other));
}

int64_t precision_in(const std::string& name) {
  if (name == "none" || name == "ieee") return static_cast<int64_t>(Precision::IEEE);
  if (name == "tf32") return static_cast<int64_t>(Precision::TF32);
  if (name == "bf16") return static_cast<int64_t>(Precision::BF16);
  fail(Why::format, "a precision is ", name.substr(0, 100));
}

int64_t value_in(const Setting& setting, const c10::IValue& value) {
  if (setting.kind == Kind::precision) {
    const int64_t precision = precision_in(text_in(value, setting.name));
    if (setting.is_of_gpu && precision == static_cast<int64_t>(Precision::BF16))
      fail(Why::format, setting.name, " is bf16, which no GPU has");
    return precision;
  }
  const bool is_true = logical_in(value, setting.name);
  return setting.kind == Kind::reduction ? !is_true : is_true;
}

/// What files of 0.2.0 say in place of `matmul` of both kinds, and of `conv` and `rnn` of the GPU.
std::optional<int64_t> older_value_in(const Setting& setting, const c10::IValue& settings) {
  const std::string name = setting.name;
  if (setting.kind != Kind::precision) return std::nullopt;
  if (name == "cuda_conv_fp32" || name == "cuda_rnn_fp32")
    return precision_in(logical_in(entry_in(settings, "cudnn_tf32"), "\"cudnn_tf32\"") ? "tf32" : "ieee");
  if (name != "cuda_matmul_fp32" && name != "mkldnn_matmul_fp32") return std::nullopt;
  const c10::IValue entry = entry_in(settings, "matmul_precision");
  const std::string& precision = text_in(entry, "\"matmul_precision\"");
  if (precision != "highest" && precision != "high" && precision != "medium")
    fail(Why::format, "\"matmul_precision\" is ", precision.substr(0, 100));
  const bool is_bf16 = precision == "medium" && name == "mkldnn_matmul_fp32";
  return precision_in(precision == "highest" ? "ieee" : is_bf16 ? "bf16" : "tf32");
}

int64_t dtype_in(const c10::IValue& recording) {
  const c10::IValue entry = entry_in(recording, "default_dtype");
  const std::string& name = text_in(entry, "\"default_dtype\"");
  const at::ScalarType dtype = read_dtype(name);
  if (!at::isFloatingType(dtype)) fail(Why::format, "\"default_dtype\" is ", name);
  return static_cast<int64_t>(dtype);
}

/// Who has the settings of the process now. Calls come in the order in which they asked.
struct Turn {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t next = 0, served = 0;
  int64_t inside = 0;
  std::shared_ptr<const Values> wanted;  // of those inside
  Values before;                         // what they have changed
};

Turn& turn() {
  static Turn& one = *new Turn;
  return one;
}

}  // namespace

CallSettings::CallSettings(const c10::IValue& recording, bool on_gpu) {
  const c10::IValue settings = entry_in(recording, "settings");
  const c10::impl::GenericDict entries = dict_in(settings, "\"settings\"");
  Values wanted;
  for (std::size_t place = 0; place < table.size(); ++place) {
    const Setting& setting = table[place];
    const std::optional<int64_t> value = setting.kind == Kind::dtype ? dtype_in(recording)
                                         : entries.contains(setting.name)
                                             ? value_in(setting, entry_in(settings, setting.name))
                                             : older_value_in(setting, settings);
    if (value && (on_gpu || !setting.is_of_gpu)) wanted.emplace_back(place, *value);
  }
  wanted_ = std::make_shared<const Values>(std::move(wanted));
}

CallSettings::Hold::Hold(const CallSettings& wanted) {
  Turn& all = turn();
  std::unique_lock lock(all.mutex);
  const uint64_t own = all.next++;
  all.changed.wait(lock, [&] {
    return own == all.served && (all.inside == 0 || all.wanted == wanted.wanted_ || *all.wanted == *wanted.wanted_);
  });
  ++all.served;
  if (all.inside++ == 0) {
    Context& torch = at::globalContext();
    all.wanted = wanted.wanted_;
    for (const auto& [place, value] : *wanted.wanted_) {
      const int64_t found = table[place].get(torch);
      if (is_same(table[place], found, value)) continue;
      all.before.emplace_back(place, found);
      table[place].set(torch, value);
    }
  }
  if (all.next != all.served) all.changed.notify_all();
}

CallSettings::Hold::~Hold() {
  Turn& all = turn();
  const std::lock_guard lock(all.mutex);
  if (--all.inside > 0) return;
  for (const auto& [place, value] : all.before) table[place].set(at::globalContext(), value);
  all.before.clear();
  if (all.next != all.served) all.changed.notify_all();
}

}  // namespace ftr
