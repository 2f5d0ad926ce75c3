// SPDX-License-Identifier: MIT
/// Delivery of an answer, whoever computed it: results on a device among them, which no script of these tests can make.
#include <cstring>

#include "arrays/copy.hpp"
#include "calls/results.hpp"
#include "support.hpp"

namespace fpt {
namespace {

using test::named;
using test::out;

using Doubles = std::vector<double>;

constexpr ResultOptions host{/*same_layout=*/true, /*cast=*/false, /*brings_to_host=*/false};
const CallName call{"f", "net"};

/// Results of the test. Those on a device have memory of the host, which delivery must not touch itself.
class FakeAnswer : public Answer {
 public:
  struct Item {
    Value value;
    std::vector<float> widened;  // half precision on the host
  };

  FakeAnswer& add(const fpt_arg& arg) { return add_item({{array_of(arg), "Tensor"}, {}}); }
  FakeAnswer& add(const Scalar& scalar) { return add_item({{scalar, type_name(scalar)}, {}}); }
  FakeAnswer& add_on_device(const fpt_arg& arg) {
    Array seen = array_of(arg);
    seen.device = {2, 1};
    return add_item({{seen, "Tensor"}, {}});
  }
  FakeAnswer& add_half(float number, bool on_device = false) {
    Array seen = array_of(test::array_arg(&unread, {1}));
    seen.dtype = FPT_FLOAT16;
    if (on_device) seen.device = {2, 1};
    return add_item({{seen, "Tensor"}, {number}});
  }

  ResultList list() const override { return {static_cast<int32_t>(items_.size()), names, false}; }
  Value value(int32_t index) override { return at(index).value; }
  Array on_host(int32_t index) override {
    ++brought;
    return on_the_host(*at(index).value.array());
  }
  Array convertible(int32_t index) override {
    std::vector<float>& widened = at(index).widened;
    return widened.empty() ? on_host(index) : (++brought, array_of(test::array_arg(widened.data(), {1})));
  }
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override {
    return Tensor::of_memory(on_host ? this->on_host(index) : *value(index).array(), {}, same_layout);
  }
  void copy(const Array& source, const Array& target) override {
    ++asked;
    fpt::copy(on_the_host(source), on_the_host(target));
  }
  void wait(Device) override { ++waited; }

  std::vector<const char*> names;
  int asked = 0, brought = 0, waited = 0;

 private:
  static Array on_the_host(Array array) {
    array.device = {};
    return array;
  }
  FakeAnswer& add_item(Item item) {
    items_.push_back(std::move(item));
    return *this;
  }
  Item& at(int32_t index) { return items_[static_cast<std::size_t>(index)]; }

  std::vector<Item> items_;
  uint16_t unread = 0xffff;
};

struct DeliveryTest : testing::Test {
  FakeAnswer answer;
  Doubles x = {1, 2}, y = {-1, -1}, z = {-1, -1};
  const Doubles untouched = {-1, -1};

  test::Outcome deliver(std::vector<fpt_arg> outputs, const ResultOptions& reading = host) {
    return test::outcome_of([&] { fpt::deliver(answer, call, reading, outputs); });
  }
  fpt_arg backwards(Doubles& values) { return test::array_arg(&values.back(), {2}, FPT_OUT, {-8}); }
};

TEST_F(DeliveryTest, ADeviceCopiesStraightIntoTheOutput) {
  answer.add_on_device(out(x));
  ASSERT_OK(deliver({out(y)}));
  EXPECT_EQ(y, x);
  EXPECT_EQ(answer.brought, 0);
}

TEST_F(DeliveryTest, AnotherTypeIsConvertedOnTheHost) {
  std::vector<float> single = {0.5f, 2};
  answer.add_on_device(out(single));
  ASSERT_OK(deliver({out(y)}));
  EXPECT_EQ(y, (Doubles{0.5, 2}));
  EXPECT_EQ(answer.asked, 0);
}

TEST_F(DeliveryTest, AnOutputThatRunsBackwardsIsFilledOnTheHost) {
  answer.add_on_device(out(x));
  ASSERT_OK(deliver({backwards(y)}));
  EXPECT_EQ(y, (Doubles{2, 1}));
  EXPECT_EQ(answer.asked, 0) << "torch has no negative strides";
}

TEST_F(DeliveryTest, ADeviceSeesTheOutputInTheOrderOfTheScript) {
  Doubles matrix = {1, 2, 3, 4, 5, 6}, target(6);
  const ResultOptions reversing{false, false, false};
  answer.add_on_device(test::array_arg(matrix.data(), {2, 3}, FPT_OUT, {24, 8}));
  ASSERT_OK(deliver({out(target, {3, 2})}, reversing));
  EXPECT_EQ(target, matrix);
}

TEST_F(DeliveryTest, NothingIsCopiedFromADeviceBeforeEverythingIsChecked) {
  answer.add_on_device(out(x)).add(out(x, {2, 1}));
  EXPECT_FAILS(deliver({out(y), out(z)}), FPT_ERR_SHAPE, "f of net, output 2: the result has shape (2, 1)");
  EXPECT_EQ(answer.asked, 0);
  EXPECT_EQ(y, untouched);
}

TEST_F(DeliveryTest, NothingIsWrittenBeforeAllIsOnTheHostThatIsConvertedThere) {
  struct Failing : FakeAnswer {
    Array on_host(int32_t) override { fail(FPT_ERR_PYTHON, "out of device memory"); }
  } failing;
  std::vector<float> single(2);
  failing.add(out(x)).add_on_device(out(single));
  std::vector<fpt_arg> outputs = {out(y), out(z)};
  EXPECT_FAILS(test::outcome_of([&] { fpt::deliver(failing, call, host, {outputs.data(), 2}); }), FPT_ERR_PYTHON,
               "f of net, output 2: out of device memory");
  EXPECT_EQ(y, untouched);
}

TEST_F(DeliveryTest, AResultOfTheHostIsReadBeforeOneOfADeviceIsWrittenOverIt) {
  answer.add_on_device(out(x)).add(out(y));
  y = {5, 6};
  ASSERT_OK(deliver({out(y), out(z)}));
  EXPECT_EQ(z, (Doubles{5, 6}));
  EXPECT_EQ(y, x);
}

TEST_F(DeliveryTest, ResultsThatAreTheOutputsOfEachOtherAreSwapped) {
  y = {5, 6};
  answer.add(out(y)).add(out(x));
  ASSERT_OK(deliver({out(x), out(y)}));
  EXPECT_EQ(x, (Doubles{5, 6}));
  EXPECT_EQ(y, (Doubles{1, 2}));
}

TEST_F(DeliveryTest, HalfPrecisionIsWidenedFirst) {
  float single = 0, from_device = 0;
  int32_t integer = 7;
  answer.add_half(0.5f);
  EXPECT_FAILS(deliver({test::array_arg(&integer, {1}, FPT_OUT)}), FPT_ERR_DTYPE, "is float32");
  answer.add_half(0.25f, /*on_device=*/true);
  ASSERT_OK(deliver({test::array_arg(&single, {1}, FPT_OUT), test::array_arg(&from_device, {1}, FPT_OUT)}));
  EXPECT_EQ(single, 0.5f);
  EXPECT_EQ(from_device, 0.25f);
  EXPECT_EQ(answer.asked, 0) << "what a device holds is not of the type of the output";
}

TEST_F(DeliveryTest, NumbersAndArraysGoByName) {
  double number = 0;
  answer.add(out(x)).add(2.5);
  answer.names = {"flux", "scale"};
  ASSERT_OK(deliver({named("scale", out(number)), named("flux", out(y))}));
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(y, x);
  EXPECT_FAILS(deliver({named("scale", out(y))}), FPT_ERR_SHAPE,
               "f of net, output 1 (\"scale\"): the result is a single number");
}

TEST_F(DeliveryTest, OneResultOfADeviceMayGoIntoTwoVariables) {
  std::vector<float> single(2);
  answer.add_on_device(out(x));
  answer.names = {"flux"};
  const ResultOptions casting{true, true, false};
  ASSERT_OK(deliver({named("flux", out(y)), named("flux", out(single))}, casting));
  EXPECT_EQ(y, x);
  EXPECT_EQ(single, (std::vector<float>{1, 2}));
}

TEST(SingleTensor, IsTheOneArrayThereIs) {
  Doubles x = {1, 2};
  const auto refused = [](FakeAnswer& answer) { return test::outcome_of([&] { single_tensor(answer, call, host); }); };
  FakeAnswer one, none, two, number;
  EXPECT_EQ(single_tensor(one.add(out(x)), call, host)->array().data, x.data());
  EXPECT_FAILS(refused(none), FPT_ERR_RESULT_COUNT, "f of net returned 0 results, but one tensor is expected");
  EXPECT_FAILS(refused(two.add(out(x)).add(out(x))), FPT_ERR_RESULT_COUNT, "returned 2 results");
  EXPECT_FAILS(refused(number.add(1.5)), FPT_ERR_RESULT_TYPE, "returned a float");
}

TEST(SingleTensor, ComesToTheHostWhereTheComputationIsOnADevice) {
  Doubles x = {1, 2};
  FakeAnswer there, here;
  EXPECT_FALSE(single_tensor(there.add_on_device(out(x)), call, host)->array().device.is_host());
  EXPECT_TRUE(single_tensor(here.add_on_device(out(x)), call, {true, false, true})->array().device.is_host());
}

struct KeptResults : testing::Test {
  std::shared_ptr<FakeAnswer> answer = std::make_shared<FakeAnswer>();
  Doubles x = {1, 2}, y = {-1, -1};

  Results results(const ResultOptions& reading = host) { return Results(answer, call, reading); }
};

TEST_F(KeptResults, StayOnTheDeviceUnlessTheComputationIsThere) {
  answer->add_on_device(out(x)).add(1.5);
  Results there = results();
  EXPECT_FAILS(test::outcome_of([&] { there.memory(1, FPT_FLOAT64, 1); }), FPT_ERR_DEVICE, "is in device memory");
  ASSERT_OK(test::outcome_of([&] { there.copy_to(1, out(y), false); }));
  EXPECT_EQ(y, x);
  EXPECT_EQ(answer->brought, 0);
  EXPECT_EQ(results({true, false, true}).memory(1, FPT_FLOAT64, 1).data, x.data());
}

TEST_F(KeptResults, AreStillOnTheDeviceAfterACopyThatTookThemOverTheHost) {
  std::vector<float> single = {0.5f, 2};
  answer->add_on_device(out(single));
  Results there = results();
  ASSERT_OK(test::outcome_of([&] { there.copy_to(1, out(y), false); }));
  EXPECT_EQ(y, (Doubles{0.5, 2}));
  EXPECT_FALSE(there.tensor(1)->array().device.is_host());
}

TEST_F(KeptResults, AreCopiedWithTheWishOfTheCopyNotOfTheModule) {
  std::vector<float> single(2);
  answer->add(out(x));
  Results casting = results({true, true, false});
  EXPECT_FAILS(test::outcome_of([&] { casting.copy_to(1, out(single), false); }), FPT_ERR_DTYPE,
               "result 1 of f of net");
  EXPECT_OK(test::outcome_of([&] { results().copy_to(1, out(single), true); }));
}

TEST_F(KeptResults, NamesMustBeText) {
  answer->add(out(x));
  answer->names = {nullptr};
  EXPECT_FAILS(test::outcome_of([&] { results(); }), FPT_ERR_RESULT_NAME, "whose name is no UTF-8");
}

TEST_F(KeptResults, LetGoOfTheirAnswerWhenTheyAreReplacedOrFreed) {
  int64_t handle = 0;
  store_results(&handle, results());
  const int64_t first = handle;
  EXPECT_EQ(answer.use_count(), 2);
  store_results(&handle, Results(std::make_shared<FakeAnswer>(), call, host));
  EXPECT_EQ(handle, first);
  EXPECT_EQ(answer.use_count(), 1);
  fpt_results_free(handle);
  store_results(&handle, results());
  EXPECT_NE(handle, first) << "a stale handle becomes a new one";
  EXPECT_EQ(answer.use_count(), 2);
  fpt_results_free(handle);
  EXPECT_EQ(answer.use_count(), 1);
}

struct OutputsTest : testing::Test {
  Doubles x = {1, 2};
  int64_t handle = 0;
  ~OutputsTest() override { free_tensor(handle); }
};

TEST_F(OutputsTest, StandForTheMemoryOfTensorsAmongThem) {
  store_tensor(&handle, Tensor::of_arg(out(x)));
  Doubles y(2);
  std::vector<fpt_arg> args = {out(y), named("flux", tensor_argument(handle))};
  const Outputs outputs({args.data(), 2});
  EXPECT_EQ(outputs.get()[0].data, y.data());
  EXPECT_EQ(outputs.get()[1].data, x.data());
  EXPECT_EQ(outputs.get()[1].handle, 0);
  EXPECT_STREQ(outputs.get()[1].name, "flux");
  EXPECT_TRUE(is_tensor_handle(args[1].handle)) << "what belongs to the caller is left alone";
}

TEST_F(OutputsTest, AreLeftAsTheyAreWithoutTensors) {
  fpt_arg arg = out(x);
  EXPECT_EQ(Outputs({&arg, 1}).get().first, &arg);
}

}  // namespace
}  // namespace fpt
