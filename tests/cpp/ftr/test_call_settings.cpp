// SPDX-License-Identifier: MIT
/// The process has the settings of a file during calls of it, and its own before and after them.
#include <ATen/Context.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "ftr/call_settings.hpp"
#include "ftr/outcome.hpp"
#include "plugin/parts.hpp"

namespace ftr {
namespace {

using c10::IValue;
using test::outcome_of;
using Dict = c10::impl::GenericDict;

Dict dict() { return Dict(c10::AnyType::get(), c10::AnyType::get()); }

/// What 0.2.0 has written of its settings.
Dict older() {
  Dict settings = dict();
  settings.insert(std::string("deterministic"), false);
  settings.insert(std::string("matmul_precision"), std::string("highest"));
  settings.insert(std::string("cudnn_tf32"), true);
  return settings;
}

IValue recording(const Dict& settings, const char* dtype = "float32") {
  Dict made = dict();
  made.insert(std::string("settings"), settings);
  made.insert(std::string("default_dtype"), std::string(dtype));
  return made;
}

CallSettings with(const char* name, const IValue& value, bool on_gpu = true) {
  Dict settings = older();
  settings.insert_or_assign(std::string(name), value);
  return {recording(settings), on_gpu};
}

at::Context& process() { return at::globalContext(); }

at::Float32Precision precision(at::Float32Backend backend, at::Float32Op of) {
  return process().float32Precision(backend, of);
}

TEST(CallSettings, HoldEachOfThemDuringACall) {
  using at::Float32Backend, at::Float32Op, at::Float32Precision;
  const auto tf32 = [](Float32Backend backend, Float32Op of) {
    return [=] { return precision(backend, of) == Float32Precision::TF32; };
  };
  const struct {
    const char* name;
    IValue value;
    std::function<bool()> is_held;
  } settings[] = {
      {"deterministic", true, [] { return process().deterministicAlgorithms(); }},
      {"deterministic_warn_only", true, [] { return process().deterministicAlgorithmsWarnOnly(); }},
      {"mkldnn", false, [] { return !process().userEnabledMkldnn(); }},
      {"mkldnn_deterministic", true, [] { return process().deterministicMkldnn(); }},
      {"mkldnn_matmul_fp32", "tf32", tf32(Float32Backend::MKLDNN, Float32Op::MATMUL)},
      {"mkldnn_conv_fp32", "tf32", tf32(Float32Backend::MKLDNN, Float32Op::CONV)},
      {"mkldnn_rnn_fp32", "tf32", tf32(Float32Backend::MKLDNN, Float32Op::RNN)},
      {"cuda_matmul_fp32", "tf32", tf32(Float32Backend::CUDA, Float32Op::MATMUL)},
      {"cuda_conv_fp32", "ieee",
       [] { return precision(Float32Backend::CUDA, Float32Op::CONV) == Float32Precision::IEEE; }},
      {"cuda_rnn_fp32", "ieee",
       [] { return precision(Float32Backend::CUDA, Float32Op::RNN) == Float32Precision::IEEE; }},
      {"fp16_reduction", false, [] { return static_cast<int>(process().allowFP16ReductionCuBLAS()) == 1; }},
      {"bf16_reduction", false, [] { return static_cast<int>(process().allowBF16ReductionCuBLAS()) == 1; }},
      {"fp16_accumulation", true, [] { return process().allowFP16AccumulationCuBLAS(); }},
      {"cudnn", false, [] { return !process().userEnabledCuDNN(); }},
      {"cudnn_benchmark", true, [] { return process().benchmarkCuDNN(); }},
      {"cudnn_deterministic", true, [] { return process().deterministicCuDNN(); }},
  };
  for (const auto& [name, value, is_held] : settings) {
    EXPECT_FALSE(is_held()) << name;
    {
      const CallSettings wanted = with(name, value);
      EXPECT_FALSE(is_held()) << name << " by a file that is loaded";
      const CallSettings::Hold call(wanted);
      EXPECT_TRUE(is_held()) << name;
    }
    EXPECT_FALSE(is_held()) << name << " after a call";
  }
}

TEST(CallSettings, HoldTheDefaultTypeAlsoWhereACallFails) {
  const CallSettings wanted(recording(older(), "float64"), false);
  try {
    const CallSettings::Hold call(wanted);
    EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kDouble);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kFloat);
}

TEST(CallSettings, OfAFileThatIsLoadedChangeNothing) {
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kDouble));
  process().setDeterministicAlgorithms(true, false);
  fpt::direct::Settings settings{};
  settings.file = std::string(std::getenv("FPT_TEST_ARCHIVES")) + "/python.ftr";
  (void)fpt::direct::load_recording(settings);
  EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kDouble);
  EXPECT_TRUE(process().deterministicAlgorithms());
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat));
  process().setDeterministicAlgorithms(false, false);
}

TEST(CallSettings, OfTheGpuStayWhereThereIsNone) {
  const CallSettings::Hold call(with("cudnn_benchmark", true, /*on_gpu=*/false));
  EXPECT_FALSE(process().benchmarkCuDNN());
}

TEST(CallSettings, OfAnEarlierVersionAreUnderstood) {
  Dict settings = older();
  settings.insert_or_assign(std::string("matmul_precision"), std::string("medium"));
  settings.insert_or_assign(std::string("cudnn_tf32"), false);
  const CallSettings::Hold call(CallSettings(recording(settings), true));
  EXPECT_EQ(precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL), at::Float32Precision::TF32);
  EXPECT_EQ(precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL), at::Float32Precision::BF16);
  EXPECT_EQ(precision(at::Float32Backend::CUDA, at::Float32Op::CONV), at::Float32Precision::IEEE);
}

TEST(CallSettings, CallsOfFilesThatDifferDoNotMeet) {
  const CallSettings single(recording(older()), false), twofold(recording(older(), "float64"), false);
  std::atomic<int> others = 0;
  const auto calls = [&others](const CallSettings& wanted, at::ScalarType dtype) {
    for (int i = 0; i < 2000; ++i) {
      const CallSettings::Hold call(wanted);
      if (c10::get_default_dtype_as_scalartype() != dtype) ++others;
    }
  };
  std::thread threads[] = {std::thread(calls, std::cref(single), at::kFloat),
                           std::thread(calls, std::cref(twofold), at::kDouble),
                           std::thread(calls, std::cref(twofold), at::kDouble)};
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(others, 0);
  EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kFloat);
}

TEST(CallSettings, CallsOfOneFileMeet) {
  const CallSettings wanted(recording(older(), "float64"), false);
  const CallSettings::Hold call(wanted);
  std::thread([&wanted] { const CallSettings::Hold beside(wanted); }).join();
  EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kDouble) << "the last one puts things back";
}

TEST(CallSettings, ThatTorchDoesNotHaveAreRefused) {
  const auto refuses = [](const char* name, const IValue& value, const char* text) {
    EXPECT_FAILS(outcome_of([&] { (void)with(name, value); }), FPT_ERR_FORMAT, text);
  };
  refuses("matmul_precision", "low", "\"matmul_precision\" is low");
  refuses("cudnn_tf32", int64_t{1}, "is no logical");
  refuses("mkldnn_matmul_fp32", "int8", "a precision is int8");
  refuses("cuda_matmul_fp32", "bf16", "which no GPU has");
  EXPECT_FAILS(outcome_of([] { (void)CallSettings(recording(older(), "int64"), false); }), FPT_ERR_FORMAT,
               "\"default_dtype\" is int64");
}

}  // namespace
}  // namespace ftr
