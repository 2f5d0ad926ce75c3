// SPDX-License-Identifier: MIT
#include "calls/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "arrays/scalar.hpp"
#include "arrays/texts.hpp"
#include "base/cuda_driver.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

using Words = std::vector<std::string>;

/// Number of letters that have to be added, left out or replaced to make one word of the other.
std::size_t distance(const std::string& one, const std::string& other) {
  Words::size_type diagonal;
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (one[i] != other[j])}));
  }
  return row.back();
}

/// "; valid are a, b. Did you mean 'a'?"
std::string suggest(const std::string& found, const Words& valid) {
  std::string text = "; valid are ";
  for (const std::string& word : valid) text += (&word == valid.data() ? "" : ", ") + word;
  const auto nearest = std::min_element(valid.begin(), valid.end(), [&](const std::string& a, const std::string& b) {
    return distance(found, a) < distance(found, b);
  });
  if (distance(found, *nearest) <= std::max(found.size(), nearest->size()) / 3)
    text += ". Did you mean '" + *nearest + "'?";
  return text;
}

std::string where(const fpt_arg& option) { return concat("load(..., ", option.name, "=)"); }

std::string text_option(const fpt_arg& option) {
  if (option.dtype != FPT_TEXT) fail(FPT_ERR_ARGUMENT, where(option), " must be a string");
  const auto owner = text_owner(option, where(option));
  return std::string(text_of(option));
}

/// Place of a word among the valid ones.
int32_t choice(const std::string& what, const std::string& word, const Words& valid) {
  const auto found = std::find(valid.begin(), valid.end(), word);
  if (found == valid.end()) fail(FPT_ERR_ARGUMENT, what, " is '", word, "'", suggest(word, valid));
  return static_cast<int32_t>(found - valid.begin());
}

int32_t choice(const fpt_arg& option, const Words& valid) { return choice(where(option), text_option(option), valid); }

int32_t integer_option(const fpt_arg& option, int32_t largest, int32_t smallest = 0) {
  int64_t value = int64_t{smallest} - 1;
  if (is_value(option)) {
    const Scalar scalar = scalar_of(option);
    if (const auto* truth = std::get_if<bool>(&scalar))
      value = *truth;
    else if (const auto* integer = std::get_if<int64_t>(&scalar))
      value = *integer;
    else
      fail(FPT_ERR_ARGUMENT, where(option), " must be a single integer or logical");
  }
  if (value < smallest || value > largest)
    fail(FPT_ERR_ARGUMENT, where(option), " must be a number between ", smallest, " and ", largest);
  return static_cast<int32_t>(value);
}

const Words& modes() {
  static const Words& words = *new Words{"checked", "safe"};
  return words;
}

void set_mode(Options& chosen, const fpt_arg& option) { chosen.safe = choice(option, modes()) == 1; }
void set_layout(Options& chosen, const fpt_arg& option) {
  chosen.same_layout = choice(option, {"reversed", "same"}) == 1;
}
void set_dtype(Options& chosen, const fpt_arg& option) {
  constexpr int32_t types[] = {FPT_NONE, FPT_FLOAT32, FPT_FLOAT64};
  chosen.real_dtype = types[choice(option, {"keep", "float32", "float64"})];
}
void set_inputs(Options& chosen, const fpt_arg& option) {
  chosen.copies_inputs = choice(option, {"share", "copy"}) == 1;
}
void set_backend(Options& chosen, const fpt_arg& option) {
  chosen.backend = static_cast<Backend>(choice(option, {"auto", "python", "direct"}));
}
void set_device(Options& chosen, const fpt_arg& option) {
  chosen.device = text_option(option);
  if (chosen.device.empty()) fail(FPT_ERR_DEVICE, where(option), " is empty; use \"cpu\", \"cuda\" or \"cuda:1\"");
  if (chosen.device == "cuda:local") chosen.device = concat("cuda:", gpu_of_name(chosen.device.c_str()));
}
void set_cast(Options& chosen, const fpt_arg& option) { chosen.cast = integer_option(option, 1) != 0; }
void set_flags(Options& chosen, const fpt_arg& option) {
  chosen.flags = integer_option(option, FPT_USE_DEVICE | FPT_USE_INFERENCE_MODE);
}
void set_weights_only(Options& chosen, const fpt_arg& option) { chosen.weights_only = integer_option(option, 1) != 0; }
void set_training(Options& chosen, const fpt_arg& option) { chosen.training = integer_option(option, 1) != 0; }
void set_record(Options& chosen, const fpt_arg& option) { chosen.record = integer_option(option, 1) != 0; }
void set_background(Options& chosen, const fpt_arg& option) { chosen.background = integer_option(option, 1) != 0; }
void set_communicator(Options& chosen, const fpt_arg& option) {
  using Limits = std::numeric_limits<int32_t>;
  chosen.communicator = integer_option(option, Limits::max(), Limits::min());
}
void set_fallback(Options& chosen, const fpt_arg& option) {
  chosen.fallback = text_option(option);
  if (chosen.fallback.empty()) fail(FPT_ERR_ARGUMENT, where(option), " is empty; name the file of a saved model");
}
void set_compile(Options& chosen, const fpt_arg& option) {
  const Words compile_modes = {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"};
  if (option.dtype != FPT_TEXT)
    chosen.compile = integer_option(option, 1) != 0 ? compile_modes[0] : "";
  else
    chosen.compile = compile_modes[static_cast<std::size_t>(choice(option, compile_modes))];
}
void set_compile_backend(Options& chosen, const fpt_arg& option) { chosen.compile_backend = text_option(option); }

struct Option {
  const char* name;
  void (*set)(Options&, const fpt_arg&);
};

constexpr Option known_options[] = {
    {"layout", set_layout},
    {"mode", set_mode},
    {"dtype", set_dtype},
    {"inputs", set_inputs},
    {"backend", set_backend},
    {"device", set_device},
    {"cast", set_cast},
    {"flags", set_flags},
    {"compile", set_compile},
    {"compile_backend", set_compile_backend},
    {"weights_only", set_weights_only},
    {"training", set_training},
    {"record", set_record},
    {"background", set_background},
    {"communicator", set_communicator},
    {"fallback", set_fallback},
};

const Option& known_option(const std::string& name) {
  const auto* found = std::find_if(std::begin(known_options), std::end(known_options),
                                   [&](const Option& option) { return option.name == name; });
  if (found != std::end(known_options)) return *found;
  Words names;
  for (const Option& option : known_options) names.emplace_back(option.name);
  fail(FPT_ERR_ARGUMENT, "load has no option '", name, "'", suggest(name, names));
}

void settle_compile(Options& chosen) {
  if (chosen.compile.empty()) {
    if (!chosen.compile_backend.empty())
      fail(FPT_ERR_ARGUMENT, "compile_backend is '", chosen.compile_backend,
           "', which has an effect together with compile= only");
    return;
  }
  if (chosen.compile_backend.empty()) chosen.compile_backend = "inductor";
  if (chosen.compile_backend != "inductor" && chosen.compile != "default")
    fail(FPT_ERR_ARGUMENT, "compile='", chosen.compile, "' is a mode of compile_backend=\"inductor\", not of '",
         chosen.compile_backend, "'");
}

}  // namespace

Options parse_options(Args options) {
  Options chosen;
  const char* mode = std::getenv("FTN_PYTORCH_MODE");
  const bool has_mode = std::any_of(options.begin(), options.end(),
                                    [](const fpt_arg& option) { return std::strcmp(option.name, "mode") == 0; });
  if (!has_mode && mode && *mode) chosen.safe = choice("the environment variable FTN_PYTORCH_MODE", mode, modes()) == 1;
  for (int32_t i = 0; i < options.count; ++i) {
    const std::string label = argument_label("option", i, options[i]);
    require_described(options[i], label);
    if (!options[i].name[0]) fail(FPT_ERR_ARGUMENT, label, " needs a name");
    known_option(options[i].name).set(chosen, options[i]);
  }
  if (chosen.device.empty() && (chosen.flags & FPT_USE_DEVICE)) chosen.device = "cuda";
  settle_compile(chosen);
  if (chosen.record && !chosen.compile.empty())
    fail(FPT_ERR_ARGUMENT, "load is given both record= and compile=: what torch.compile has made cannot be recorded");
  if (chosen.background && chosen.communicator)
    fail(FPT_ERR_ARGUMENT,
         "load is given both background= and communicator=: a process beside the program is no rank of MPI");
  return chosen;
}

}  // namespace fpt
