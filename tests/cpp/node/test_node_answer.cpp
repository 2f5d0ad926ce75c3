// SPDX-License-Identifier: MIT
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "node/node_answer.hpp"
#include "support.hpp"

namespace fpt {
namespace {

constexpr const char *refused = "nobody can look into it", *out_of_reach = "it cannot be copied to the host";

/// An array, numbers, a text, what Fortran cannot look into, and an array that does not come to the host.
class PlayedAnswer : public Answer {
 public:
  explicit PlayedAnswer(std::size_t columns) : numbers(3 * columns) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  }
  ResultList list() const override { return {7, {"array", "truth", "count", "z", "text", nullptr, "far"}, false}; }
  Value value(int32_t index) override {
    switch (index) {
      case 0:
        return {on_host(0), "Tensor"};
      case 1:
        return {Scalar(true), "bool"};
      case 2:
        return {Scalar(int64_t{-7}), "int"};
      case 3:
        return {Scalar(std::complex<double>(1, -2)), "complex"};
      case 4:
        return {Scalar(std::string_view("blanks at its end  ")), "str"};
      case 6:
        return {Array(), "Tensor"};
      default:
        fail(FPT_ERR_RESULT_TYPE, refused);
    }
  }
  Array on_host(int32_t index) override {
    if (index == 6) fail(FPT_ERR_DEVICE, out_of_reach);
    return array_of(test::array_arg(numbers.data(), {3, static_cast<int64_t>(numbers.size() / 3)}));
  }
  Array convertible(int32_t index) override { return on_host(index); }
  TensorPtr tensor(int32_t, bool, bool) override { return nullptr; }
  void copy(const Array&, const Array&) override {}
  void wait(Device) override {}

  std::vector<double> numbers;
};

TEST(NodeAnswer, IsWhatTheOtherProcessHasSent) {
  Segment memory;
  PlayedAnswer answer(4);
  SegmentWriter writer(memory, 0);
  send_results(answer, writer);
  SegmentReader reader(memory, 0);
  const auto received = std::make_shared<NodeAnswer>(reader);
  EXPECT_EQ(reader.end(), writer.end());
  std::memset(memory.at(0), 7, static_cast<std::size_t>(memory.bytes()));  // the next request
  const ResultList list = received->list();
  ASSERT_EQ(list.count, 7);
  EXPECT_STREQ(list.names[0], "array");
  EXPECT_EQ(list.names[5], nullptr);
  const Value array = received->value(0);
  ASSERT_TRUE(array.array());
  EXPECT_STREQ(array.type, "Tensor");
  EXPECT_TRUE(same_shape(*array.array(), answer.on_host(0)));
  const Array packed = reversed(*array.array()), wanted = reversed(answer.on_host(0));
  EXPECT_TRUE(is_contiguous(packed));
  std::vector<double> seen(12);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const auto at = [&](const Array& of) {
        double number;
        std::memcpy(&number,
                    static_cast<const char*>(of.data) + static_cast<int64_t>(i) * of.strides[0] +
                        static_cast<int64_t>(j) * of.strides[1],
                    sizeof number);
        return number;
      };
      EXPECT_EQ(at(packed), at(wanted));
    }
  EXPECT_EQ(std::get<Scalar>(received->value(1).content), Scalar(true));
  EXPECT_EQ(std::get<Scalar>(received->value(2).content), Scalar(int64_t{-7}));
  EXPECT_EQ(std::get<Scalar>(received->value(3).content), Scalar(std::complex<double>(1, -2)));
  EXPECT_EQ(std::get<Scalar>(received->value(4).content), Scalar(std::string_view("blanks at its end  ")));
  EXPECT_FAILS(test::outcome_of([&] { received->value(5); }), FPT_ERR_RESULT_TYPE, refused);
  EXPECT_FAILS(test::outcome_of([&] { received->value(6); }), FPT_ERR_DEVICE, out_of_reach);
}

/// The reader would take what was never written for the array.
TEST(NodeAnswer, AnArrayWithoutSharedMemoryFailsTheCall) {
  Segment memory;
  PlayedAnswer answer(1 << 20);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  SegmentWriter writer(memory, 0);
  const test::Outcome outcome = test::outcome_of([&] { send_results(answer, writer); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FAILS(outcome, FPT_ERR_MEMORY, "could not be made larger");
}

}  // namespace
}  // namespace fpt
