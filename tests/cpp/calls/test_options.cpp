// SPDX-License-Identifier: MIT
#include "calls/options.hpp"
#include "support.hpp"

namespace fpt::test {
namespace {

Options options_of(std::vector<fpt_arg> options) { return parse_options(options); }

class OptionsTest : public testing::Test {
 protected:
  Variable no_mode{"FTN_PYTORCH_MODE", nullptr};

  static void refused(const std::vector<fpt_arg>& options, const char* part) {
    EXPECT_FAILS(outcome_of([&] { options_of(options); }), FPT_ERR_ARGUMENT, part);
  }
};

TEST_F(OptionsTest, Defaults) {
  const Options options = options_of({});
  EXPECT_FALSE(options.same_layout || options.safe || options.copies_inputs || options.cast || options.training);
  EXPECT_EQ(options.real_dtype, FPT_NONE);
  EXPECT_EQ(options.backend, Backend::automatic);
  EXPECT_EQ(options.device, "");
}

TEST_F(OptionsTest, EveryOptionIsRead) {
  const Options options =
      options_of({named("layout", in("same")), named("mode", in("safe")), named("dtype", in("float32")),
                  named("inputs", in("copy")), named("cast", in(true)), named("flags", in(2)),
                  named("device", in("cuda:1")), named("backend", in("direct")), named("training", in(true))});
  EXPECT_TRUE(options.same_layout && options.safe && options.copies_inputs && options.cast && options.training);
  EXPECT_EQ(options.real_dtype, FPT_FLOAT32);
  EXPECT_EQ(options.flags, 2);
  EXPECT_EQ(options.device, "cuda:1");
  EXPECT_EQ(options.backend, Backend::direct);
}

TEST_F(OptionsTest, RealArraysAreCastAndComplexOnesFollow) {
  const Options options = options_of({named("dtype", in("float32"))});
  EXPECT_EQ(options.wanted_dtype(FPT_FLOAT64), FPT_FLOAT32);
  EXPECT_EQ(options.wanted_dtype(FPT_COMPLEX128), FPT_COMPLEX64);
  EXPECT_EQ(options.wanted_dtype(FPT_INT64), FPT_INT64);
  EXPECT_EQ(options_of({named("dtype", in("float64"))}).wanted_dtype(FPT_COMPLEX64), FPT_COMPLEX128);
  EXPECT_EQ(options_of({named("dtype", in("keep"))}).wanted_dtype(FPT_FLOAT64), FPT_FLOAT64);
}

TEST_F(OptionsTest, DeviceFlagMeansCuda) {
  EXPECT_EQ(options_of({named("flags", in(1))}).device, "cuda");
  EXPECT_EQ(options_of({named("flags", in(1)), named("device", in("cuda:1"))}).device, "cuda:1");
}

TEST_F(OptionsTest, ModeOfTheEnvironmentIsADefault) {
  const Variable mode("FTN_PYTORCH_MODE", "safe");
  EXPECT_TRUE(options_of({}).safe);
  EXPECT_FALSE(options_of({named("mode", in("checked"))}).safe);
}

TEST_F(OptionsTest, ModeOfTheEnvironmentIsCheckedWhereItCounts) {
  const Variable mode("FTN_PYTORCH_MODE", "quick");
  refused({}, "the environment variable FTN_PYTORCH_MODE is 'quick'; valid are checked, safe");
  EXPECT_TRUE(options_of({named("mode", in("safe"))}).safe);
}

TEST_F(OptionsTest, OtherValuesAreRefusedWithThoseThatAreValid) {
  refused({named("layout", in("sideways"))}, "load(..., layout=) is 'sideways'; valid are reversed, same");
  refused({named("layout", in(1))}, "load(..., layout=) must be a string");
  refused({named("mode", in("fast"))}, "'fast'; valid are checked, safe");
  refused({named("dtype", in("int8"))}, "keep, float32, float64");
  refused({named("inputs", in("keep"))}, "share, copy");
  refused({named("backend", in("gpu"))}, "auto, python, direct");
  refused({named("device", in(1))}, "must be a string");
}

TEST_F(OptionsTest, OthersAreLeftToPythonWhereThereIsOne) {
  const auto refused = [](std::vector<fpt_arg> options) {
    options_of(options);
    return outcome_of([&] { refuse_python_options("net.pt", options, false); });
  };
  for (const fpt_arg& option : {named("layout", in("same")), named("weights_only", in(false)),
                                named("record", in(false)), named("fallback", in("")), named("compile", in(false))})
    EXPECT_OK(refused({option}));
  for (const fpt_arg& option : {named("speed", in(1)), named("record", in(true)), named("communicator", in(0)),
                                named("compile", in("default"))})
    EXPECT_FAILS(refused({option}), FPT_ERR_ARGUMENT, (concat("leave out ", option.name, "=").c_str()));
}

TEST_F(OptionsTest, ARecordingAveragesOverTheRanksOfACommunicator) {
  EXPECT_FALSE(options_of({}).communicator.has_value());
  EXPECT_EQ(options_of({named("communicator", in(0))}).communicator, 0);
  EXPECT_EQ(options_of({named("communicator", in(-2080374784))}).communicator, -2080374784);
  EXPECT_FALSE(options_of({named("communicator", in("world"))}).communicator.has_value()) << "Python refuses it";
  std::vector<fpt_arg> options = {named("communicator", in(3))};
  EXPECT_OK(outcome_of([&] { refuse_python_options("net.ftr", {options.data(), 1}, true); }));
}

TEST_F(OptionsTest, AnEmptyDeviceIsNoDevice) {
  EXPECT_FAILS(outcome_of([] { options_of({named("device", in(""))}); }), FPT_ERR_DEVICE, "device=) is empty");
}

TEST_F(OptionsTest, NumbersHaveARange) {
  refused({named("flags", in(4))}, "load(..., flags=) must be a number between 0 and 3");
  refused({named("flags", in(-1))}, "between 0 and 3");
  refused({named("flags", in(1.5))}, "must be a single integer or logical");
  refused({named("cast", in(2))}, "between 0 and 1");
  refused({named("cast", in("yes"))}, "integer or logical");
  std::vector<int32_t> several = {1, 1};
  refused({named("cast", in(several))}, "load(..., cast=)");
}

TEST_F(OptionsTest, DescriptionsThatFailedAreTold) {
  refused({in("same")}, "option 1 needs a name");
  fpt_arg unallocated;
  describe_text(unallocated, nullptr, 0, FPT_IN);
  EXPECT_FAILS(outcome_of([&] { options_of({named("device", unallocated)}); }), FPT_ERR_UNALLOCATED,
               "option 1 (\"device\")");
}

}  // namespace
}  // namespace fpt::test
