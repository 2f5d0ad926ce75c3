// SPDX-License-Identifier: MIT
/// Random calls of the C interface: any handle, any enum value, any argument that the header allows, in any order.
///
/// FPT_FUZZ_INPUTS  how many inputs, default 2000; an input is a sequence of up to 12 calls
/// FPT_FUZZ_SEED    of the first input, default 0; the others follow it. make stress takes it from the clock
///
/// After each call: a status of the list, a text in UTF-8 that belongs to it, memory outside of the outputs untouched,
/// outputs untouched on failure. An input that fails is run again by the line that is printed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>

#include "ftn_pytorch.h"
#include "fuzzing.hpp"

namespace {

uint64_t current_seed = 0;
char replay_line[200];

extern "C" void tell_seed(int number) {
  const ssize_t ignored = write(STDERR_FILENO, replay_line, std::strlen(replay_line));
  (void)ignored;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

fpt_module module_handles[4];
double call_back(double);

class Input {
 public:
  explicit Input(uint64_t seed) : random_(seed) {}

  void run() {
    const int calls = 1 + below(12);
    for (int i = 0; i < calls && !testing::Test::HasFailure(); ++i) step();
    for (const fpt_tensor tensor : tensors_) fpt_tensor_free(tensor);
    for (const fpt_wrap wrap : wraps_) fpt_wrap_free(wrap);
    for (const fpt_results results : results_) fpt_results_free(results);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool rarely() { return below(12) == 0; }

  /// A handle of the list, or one that it never was, or zero, or one of another kind.
  int64_t any(const std::vector<int64_t>& list) {
    if (!list.empty() && below(8)) return list[random_() % list.size()];
    switch (below(5)) {
      case 0:
        return 0;
      case 1:
        return static_cast<int64_t>(random_());
      case 2:
        return tensors_.empty() ? -1 : tensors_[0];
      case 3:
        return results_.empty() ? INT64_MIN : results_[0];
      default:
        return module_handles[0] + (int64_t{1} << 32);
    }
  }
  fpt_module module() { return below(20) ? module_handles[below(4)] : any(tensors_); }

  void check(fpt_status status, const char* what) {
    const char* text = nullptr;
    int64_t length = 0;
    fpt_error_text(&text, &length);
    EXPECT_STRNE(fpt_status_name(status), "unknown status") << what;
    EXPECT_NE(status, FPT_ERR_INTERNAL) << what << ": " << std::string(text, static_cast<std::size_t>(length));
    if (status == FPT_OK) return;
    EXPECT_GT(length, 0) << what;
    EXPECT_TRUE(is_utf8(text, length)) << what << ": " << std::string(text, static_cast<std::size_t>(length));
  }

  Block& block() {
    if (blocks_.empty() || below(3)) make_block();
    return *blocks_[random_() % blocks_.size()];
  }

  /// An array, a section of one, a scalar, a text, or what is refused when it is described.
  void make_block() {
    auto made = std::make_unique<Block>();
    Block& b = *made;
    const int32_t access = rarely() ? below(9) - 3 : below(3);
    b.memory.resize(1024);
    for (std::size_t i = 0; i < b.memory.size(); i += sizeof(uint64_t)) {
      const uint64_t word = random_();
      std::memcpy(&b.memory[i], &word, sizeof word);
    }
    b.mask.assign(b.memory.size(), 0);
    if (below(6) == 0) {
      const int64_t length = below(4) ? below(200) : below(5) - 2;
      for (int64_t i = 0; i < length; ++i) b.memory[static_cast<std::size_t>(i)] = "ab \xc3\xa9\0xyz  "[below(10)];
      check(fpt_arg_text(&b.arg, rarely() ? nullptr : reinterpret_cast<char*>(b.memory.data()), length, access),
            "arg_text");
      for (int64_t i = 0; i < length; ++i) b.mask[static_cast<std::size_t>(i)] = 1;
    } else {
      make_array(b, access);
    }
    if (below(4) == 0) {
      static const char* const too_long = "a_name_that_is_longer_than_the_sixty_three_characters_that_fit_in_there";
      static const char* names[] = {"i", "x", "out", "a", "\xc3\xa9", "\xe9", "", "self", "a b", "first", too_long};
      const char* name = names[below(11)];
      check(fpt_arg_name(&b.arg, name, length_of(name)), "arg_name");
    }
    b.may_change = access == FPT_OUT;
    b.before = b.memory;
    blocks_.push_back(std::move(made));
  }

  void make_array(Block& b, int32_t access) {
    const int32_t dtype = rarely() ? below(40) - 10 : 1 + below(9);
    const int32_t rank = rarely() ? below(40) - 10 : below(5);
    const int size = dtype >= 0 && dtype < 17 ? sizes[dtype] : 1;
    int64_t extents[FPT_MAX_RANK] = {}, strides[FPT_MAX_RANK] = {};
    const bool packed = below(2);
    int64_t stride = size, first = 0;
    for (int i = 0; i < rank && i < FPT_MAX_RANK; ++i) {
      extents[i] = rarely() ? 0 : 1 + below(4);
      stride *= packed ? 1 : 1 + below(2);
      strides[i] = !packed && below(4) == 0 ? -stride : stride;
      if (strides[i] < 0 && extents[i] > 0) first += stride * (extents[i] - 1);
      stride *= extents[i] > 0 ? extents[i] : 1;
    }
    if (stride > 1000 || first > 1000) return make_array(b, access);
    if (dtype == FPT_BOOL)
      for (unsigned char& byte : b.memory) byte &= 1;
    if (rarely() && rank > 0 && rank <= FPT_MAX_RANK) {
      // refused, or without elements: the memory is never looked at
      static const int64_t odd[] = {-1, INT64_MIN, INT64_MAX, int64_t{1} << 40};
      extents[below(rank)] = odd[below(4)];
      extents[below(rank)] = below(2) ? 0 : INT64_MAX;
    } else {
      mark(b, size, rank, extents, strides, first);
    }
    void* data = rarely() ? nullptr : b.memory.data() + first;
    check(fpt_arg_array(&b.arg, data, dtype, rank, extents, packed ? nullptr : strides, access), "arg_array");
  }

  /// Bytes of a block that a call may not have written.
  void check_memory(const char* what, bool failed, bool in_place) {
    for (const auto& b : blocks_) {
      for (std::size_t i = 0; i < b->memory.size(); ++i) {
        if (b->memory[i] == b->before[i]) continue;
        ASSERT_TRUE(b->mask[i] && (in_place || (b->may_change && !failed))) << what << " wrote byte " << i;
      }
      b->before = b->memory;
    }
  }

  std::vector<fpt_arg> arguments(int most) {
    std::vector<fpt_arg> list;
    for (int n = below(most + 1); n > 0; --n) {
      if (below(6) == 0) {
        fpt_arg arg;
        check(fpt_tensor_arg(any(tensors_), &arg), "tensor_arg");
        list.push_back(arg);
      } else {
        list.push_back(block().arg);
      }
    }
    return list;
  }

  void step() {
    switch (below(10)) {
      case 0:
        return tensor_step();
      case 1:
        return wrap_step();
      case 2:
        return results_step();
      case 3:
        return module_step();
      default:
        return call_step();
    }
  }

  void call_step() {
    static const char* const functions[] = {"same",  "pick",   "named", "fails", "changes", "disturbs",
                                            "count", "writes", "again", "deep",  "absent",  ""};
    const int chosen = below(40) ? below(9) : 9 + below(3);
    const char* name = functions[chosen];
    std::vector<fpt_arg> inputs = arguments(4), outputs = arguments(3);
    if (chosen == 1 || chosen == 3 || chosen == 5 || chosen == 8) {
      fpt_arg number;
      double value = below(1000);
      fpt_arg_array(&number, &value, FPT_FLOAT64, 0, nullptr, nullptr, FPT_IN);
      inputs.insert(inputs.begin(), number);
    }
    fpt_results results = any(results_), *wanted = below(2) ? &results : nullptr;
    int32_t completed = -77;
    double loss = -77;
    fpt_status status;
    const auto nin = count_of(inputs), nout = count_of(outputs);
    switch (below(6)) {
      case 0:
        status = fpt_module_forward(module(), inputs.data(), nin, outputs.data(), nout, wanted, below(5) - 1);
        name = "forward";
        break;
      case 1:
        status = fpt_module_train(module(), inputs.data(), nin, outputs.data(), nout, &completed, &loss);
        EXPECT_TRUE(status == FPT_OK || (completed == -77 && loss == -77));
        wanted = nullptr;
        name = "train";
        break;
      default:
        status = fpt_module_call(module(), name, length_of(name), inputs.data(), nin, outputs.data(), nout, wanted);
    }
    check(status, name);
    if (status == FPT_OK && wanted) results_.push_back(results);
    check_memory(name, status != FPT_OK, !std::strcmp(name, "changes") || !std::strcmp(name, "writes"));
  }

  void tensor_step() {
    fpt_tensor tensor = any(tensors_);
    int32_t dtype = -1, rank = -1;
    int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
    char device[32] = "";
    void* data = nullptr;
    fpt_arg arg;
    switch (below(6)) {
      case 0:
        return fpt_tensor_free(tensor);
      case 1:
        fpt_tensor_is_set(tensor);
        return (void)fpt_tensor_address(tensor);
      case 2:
        return check(fpt_tensor_info(tensor, &dtype, &rank, extents, device), "tensor_info");
      case 3:
        return check(fpt_tensor_data(tensor, below(20) - 2, below(8), &data, extents, strides), "tensor_data");
      default: {
        auto status = fpt_tensor_set(&tensor, below(4) ? &block().arg : (fpt_tensor_arg(any(tensors_), &arg), &arg));
        check(status, "tensor_set");
        if (status == FPT_OK) tensors_.push_back(tensor);
      }
    }
  }

  void wrap_step() {
    fpt_wrap wrap = any(wraps_);
    fpt_tensor tensor = any(tensors_);
    int32_t completed = 0;
    double loss = 0;
    fpt_status status = FPT_OK;
    switch (below(7)) {
      case 0:
        return fpt_wrap_free(wrap);
      case 1:
        return check(fpt_wrap_clear(wrap), "wrap_clear");
      case 2:
        status = fpt_wrap_create(&wrap);
        if (status == FPT_OK) wraps_.push_back(wrap);
        return check(status, "wrap_create");
      case 3:
        status = fpt_module_forward_wrap(module(), wrap, &tensor, below(4));
        if (status == FPT_OK) tensors_.push_back(tensor);
        break;
      case 4:
        status = fpt_module_train_wrap(module(), wrap, tensor, &completed, &loss);
        break;
      default:
        return check(fpt_wrap_add(wrap, &block().arg), "wrap_add");
    }
    check(status, "wrap call");
    check_memory("wrap call", true, false);
  }

  void results_step() {
    const fpt_results results = any(results_);
    const int32_t index = below(6) - 1;
    int32_t number = 0;
    int64_t length = 0, extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
    const char* text = nullptr;
    void* data = nullptr;
    fpt_tensor tensor = any(tensors_);
    fpt_status status;
    switch (below(8)) {
      case 0:
        return fpt_results_free(results);
      case 1:
        return check(fpt_results_count(results, &number), "results_count");
      case 2:
        return check(fpt_results_name(results, index, &text, &length), "results_name");
      case 3:
        return check(fpt_results_find(results, below(2) ? "a" : "\xe9", 1, &number), "results_find");
      case 4:
        status = fpt_results_get(results, index, &tensor);
        if (status == FPT_OK) tensors_.push_back(tensor);
        return check(status, "results_get");
      case 5:
        return check(fpt_results_data(results, index, below(20) - 2, below(8), &data, extents, strides),
                     "results_data");
      case 6:
        return check(fpt_results_text(results, index, &text, &length), "results_text");
      default: {
        Block& b = block();
        status = fpt_results_copy(results, index, &b.arg, below(2));
        check(status, "results_copy");
        check_memory("results_copy", status != FPT_OK, false);
      }
    }
  }

  void module_step() {
    fpt_module handle = module();
    int32_t has = 0;
    const char* text = nullptr;
    int64_t length = 0;
    std::vector<fpt_arg> options = arguments(2), config = arguments(2);
    switch (below(7)) {
      case 0:
        return check(fpt_module_has(handle, "same\xe9", 4 + below(2), &has), "module_has");
      case 1:
        return check(fpt_module_backend(handle, &text, &length), "module_backend");
      case 2:
        return check(fpt_module_save(handle, below(2) ? "fail" : "good", 4), "module_save");
      case 3:
        if (below(2)) return check(fpt_module_checkpoint(handle, "no/x", 4, below(5) - 2, below(5) - 2), "checkpoint");
        return check(fpt_module_restore(handle, "x", 1, below(2), below(5) - 2, nullptr), "module_restore");
      case 4:
        handle = 0;
        // nothing of the kind can be loaded, so the modules of this program stay
        return check(fpt_module_load(&handle, below(5) - 1, below(2) ? "none" : "\xe9.py", below(2) ? 4 : 0,
                                     options.data(), count_of(options), config.data(), count_of(config)),
                     "module_load");
      case 5:
        return fpt_module_free(any(tensors_));
      default:
        return check(below(100) ? fpt_init("/nowhere", 8) : fpt_module_reload(handle), "init or reload");
    }
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<int64_t> tensors_, wraps_, results_;
};

double call_back(double value) {
  // the script is entered again, with the module that is running
  fpt_arg input, output;
  double result = -1;
  fpt_arg_array(&input, &value, FPT_FLOAT64, 0, nullptr, nullptr, FPT_IN);
  fpt_arg_array(&output, &result, FPT_FLOAT64, 0, nullptr, nullptr, FPT_OUT);
  fpt_module_call(module_handles[static_cast<int>(value) % 4], "same", 4, &input, 1, &output, 1, nullptr);
  return result;
}

fpt_module load(const char* option, const char* value) {
  const std::string file = STRESS_SCRIPTS "/fuzzed.py";
  fpt_module handle = 0;
  fpt_arg arg;
  fpt_arg_text(&arg, value, static_cast<int64_t>(std::strlen(value)), FPT_IN);
  fpt_arg_name(&arg, option, static_cast<int64_t>(std::strlen(option)));
  EXPECT_EQ(fpt_module_load(&handle, 0, file.data(), static_cast<int64_t>(file.size()), &arg, 1, nullptr, 0), FPT_OK);
  double address = static_cast<double>(reinterpret_cast<std::intptr_t>(call_back));
  fpt_arg_array(&arg, &address, FPT_FLOAT64, 0, nullptr, nullptr, FPT_IN);
  EXPECT_EQ(fpt_module_call(handle, "set_callback", 12, &arg, 1, nullptr, 0, nullptr), FPT_OK);
  return handle;
}

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(FuzzAbi, AnySequenceOfCallsIsSurvived) {
  fpt_on_warning([](const char*, int64_t) {});
  module_handles[0] = load("mode", "checked");
  module_handles[1] = load("mode", "safe");
  module_handles[2] = load("layout", "same");
  module_handles[3] = load("dtype", "float32");
  ASSERT_FALSE(HasFailure());
  const uint64_t seed = number("FPT_FUZZ_SEED", 0), inputs = number("FPT_FUZZ_INPUTS", 2000);
  std::cout << "FPT_FUZZ_SEED=" << seed << " FPT_FUZZ_INPUTS=" << inputs << std::endl;
  for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) std::signal(crash, tell_seed);
  for (current_seed = seed; current_seed < seed + inputs; ++current_seed) {
    std::snprintf(replay_line, sizeof replay_line, "\nreplay: FPT_FUZZ_SEED=%llu FPT_FUZZ_INPUTS=1 bin/fuzz_abi\n",
                  static_cast<unsigned long long>(current_seed));
    Input(current_seed).run();
    if (HasFailure()) {
      std::cout << replay_line << "the inputs before it, too: FPT_FUZZ_SEED=" << seed
                << " FPT_FUZZ_INPUTS=" << current_seed - seed + 1 << " bin/fuzz_abi" << std::endl;
      return;
    }
  }
}

}  // namespace
