// SPDX-License-Identifier: MIT
/// A file as a program that has taken the reader runs it: calls, and what is refused of them.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <cstdlib>

#include "ftr/outcome.hpp"
#include "ftr/plain_values.hpp"
#include "ftr/program.hpp"
#include "plugin/recording/archive_file.hpp"

namespace ftr::programs {
namespace {

using c10::IValue;
using test::outcome_of;

std::string archive(const char* name) { return std::string(std::getenv("FPT_TEST_ARCHIVES")) + "/" + name; }

IValue tuple(std::vector<IValue> items) { return c10::ivalue::Tuple::create(std::move(items)); }
IValue text(const char* words) { return std::string(words); }

/// A function "mean" of two numbers that averages them over ranks.
IValue averaging() {
  const IValue none = tuple({}), pair = tuple({tuple({int64_t{0}, int64_t{2}})}),
               ones = tuple({tuple({int64_t{0}, int64_t{1}})});
  c10::impl::GenericDict tape(c10::AnyType::get(), c10::AnyType::get());
  for (const char* empty : {"constants", "numbers", "branches", "before", "gradients", "written_inputs"})
    tape.insert(text(empty), none);
  tape.insert(text("batch"), false);
  tape.insert(text("writes"), false);
  tape.insert(text("least"), int64_t{1});
  tape.insert(text("slots"), int64_t{2});
  tape.insert(text("inputs"), tuple({tuple({text("x"), text("tensor"), int64_t{0}, text("float32"), pair, ones})}));
  const IValue arguments = tuple({tuple({text("slot"), int64_t{0}}), tuple({text("value"), int64_t{1}})});
  tape.insert(text("operations"), tuple({tuple({text("ftn_pytorch::all_reduce_mean"), text(""), text(""), arguments,
                                                tuple({tuple({int64_t{1}})})})}));
  tape.insert(text("results"), tuple({int64_t{1}}));
  tape.insert(text("template"), tuple({text("tensor"), int64_t{0}}));
  c10::impl::GenericDict functions(c10::AnyType::get(), c10::AnyType::get());
  functions.insert(text("mean"), tuple({tape}));
  return functions;
}

/// A file with that function in place of others.
std::string file_with_average(const fpt::test::Folder& folder) {
  Content content = read_content(archive("python.ftr"));
  c10::impl::GenericDict recording(c10::AnyType::get(), c10::AnyType::get());
  for (const auto& entry : content.recording.toGenericDict()) recording.insert(entry.key(), entry.value());
  recording.insert_or_assign(text("functions"), averaging());
  content.recording = recording;
  std::string file = (folder.path() / "mean.ftr").string();
  fpt::direct::write_archive(file, content);
  return file;
}

TEST(Program, TellsWhyACallIsRefused) {
  Program program(archive("python.ftr"));
  const IValue x = at::ones({4, 3});
  const auto call = [&](const char* name, std::vector<Given> given) {
    return outcome_of([&] { (void)program.run(name, given); });
  };
  EXPECT_FAILS(call("halve", {{x}}), FPT_ERR_HOOK, "has no function halve; it has ftn_pytorch_forward");
  EXPECT_FAILS(call("ftn_pytorch_forward", {{x}}), FPT_ERR_SIGNATURE, "is given float32 (4, 3); its recordings take: ");
  EXPECT_FAILS(call("ftn_pytorch_forward", {{at::ones({4}, at::kInt)}, {2.5}}), FPT_ERR_DTYPE, "int32 (4,), 2.5");
  EXPECT_FAILS(call("ftn_pytorch_forward", {{at::ones({4, 2})}, {2.5}}), FPT_ERR_SHAPE, "x float32 (B, 3)");
  EXPECT_FAILS(call("ftn_pytorch_forward", {{x}, {2.0}}), FPT_ERR_ARGUMENT, "a constant = 2.5");
  EXPECT_FAILS(call("ftn_pytorch_forward", {{x}, {2.5}}), FPT_ERR_HOOK, "gradients are not set as they were");
  EXPECT_FAILS(outcome_of([] { Program(archive("python.ckpt")); }), FPT_ERR_FORMAT, "which holds no functions");
}

TEST(Program, AveragesByWhatItIsGiven) {
  const fpt::test::Folder folder;
  const std::string file = file_with_average(folder);
  const IValue x = at::full({2}, 3.0F);
  Program alone(file);
  EXPECT_FAILS(outcome_of([&] { (void)alone.run("mean", {{x}}); }), FPT_ERR_ARGUMENT, "mean averages over ranks");
  Options options;
  options.average_of = [](const std::string&) -> Average {
    return [](c10::Stack& stack) {
      stack.pop_back();
      stack.back() = stack.back().toTensor() / 2;
    };
  };
  Program program(file, options);
  EXPECT_EQ(program.run("mean", {{x, "x"}}).toTensor().sum().item<float>(), 3);
  EXPECT_EQ(program.run("mean", {{x}}).toTensor().numel(), 2);
}

}  // namespace
}  // namespace ftr::programs
