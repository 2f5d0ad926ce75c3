// SPDX-License-Identifier: MIT
#include "calls/options.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "arrays/scalar.hpp"
#include "arrays/texts.hpp"
#include "base/cuda_driver.hpp"
#include "base/error.hpp"
#include "base/switches.hpp"

namespace fpt {
namespace {

/// What an option may be: one of some words, or a number up to the largest.
struct Row {
  std::string_view name;
  const char* words[4];  ///< a null ends them
  int32_t largest;
};

constexpr Row rows[] = {
#include "calls/option_rows.inc"  // generated from runners/option_table.py
};

/// None for an option of what Python runs.
const Row* row_of(std::string_view name) noexcept {
  const auto* found = std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.name == name; });
  return found != std::end(rows) ? found : nullptr;
}

std::string where(const fpt_arg& option) { return concat("load(..., ", option.name, "=)"); }

std::string text_option(const fpt_arg& option) {
  if (option.dtype != FPT_TEXT) fail(FPT_ERR_ARGUMENT, where(option), " must be a string");
  const auto owner = text_owner(option, where(option));
  return std::string(text_of(option));
}

/// Place of a word among the valid ones of an option.
int32_t choice(const std::string& what, const std::string& word, std::string_view option) {
  std::string listed;
  const Row& row = *row_of(option);
  for (int32_t place = 0; row.words[place]; ++place) {
    if (word == row.words[place]) return place;
    listed += (place > 0 ? ", " : "") + std::string(row.words[place]);
  }
  fail(FPT_ERR_ARGUMENT, what, " is '", word, "'; valid are ", listed);
}

int32_t choice(const fpt_arg& option) { return choice(where(option), text_option(option), option.name); }

int32_t number(const fpt_arg& option) {
  const int32_t largest = row_of(option.name)->largest;
  int64_t value = -1;
  const Scalar scalar = scalar_of(option);
  if (const auto* truth = std::get_if<bool>(&scalar))
    value = *truth;
  else if (const auto* integer = std::get_if<int64_t>(&scalar))
    value = *integer;
  else
    fail(FPT_ERR_ARGUMENT, where(option), " must be a single integer or logical");
  if (value < 0 || value > largest) fail(FPT_ERR_ARGUMENT, where(option), " must be a number between 0 and ", largest);
  return static_cast<int32_t>(value);
}

/// A GPU by its number where the name leaves that to us; "cuda" where that says the same.
std::string own_gpu(const std::string& device) {
  if (device != "cuda" && device != "cuda:local") return device;
  const int gpu = gpu_of_name(device.c_str());
  return device == "cuda" && gpu == 0 ? device : concat("cuda:", gpu);
}

std::string device_option(const fpt_arg& option) {
  const std::string device = text_option(option);
  if (device.empty()) fail(FPT_ERR_DEVICE, where(option), " is empty; use \"cpu\", \"cuda\" or \"cuda:1\"");
  return own_gpu(device);
}

constexpr int32_t real_dtypes[] = {FPT_NONE, FPT_FLOAT32, FPT_FLOAT64};

struct Reader {
  std::string_view name;
  void (*set)(Options&, const fpt_arg&);
};

constexpr Reader readers[] = {
    {"layout", [](Options& to, const fpt_arg& it) { to.same_layout = choice(it) == 1; }},
    {"mode", [](Options& to, const fpt_arg& it) { to.safe = choice(it) == 1; }},
    {"dtype", [](Options& to, const fpt_arg& it) { to.real_dtype = real_dtypes[choice(it)]; }},
    {"inputs", [](Options& to, const fpt_arg& it) { to.copies_inputs = choice(it) == 1; }},
    {"backend", [](Options& to, const fpt_arg& it) { to.backend = static_cast<Backend>(choice(it)); }},
    {"device", [](Options& to, const fpt_arg& it) { to.device = device_option(it); }},
    {"cast", [](Options& to, const fpt_arg& it) { to.cast = number(it) != 0; }},
    {"flags", [](Options& to, const fpt_arg& it) { to.flags = number(it); }},
    {"per", [](Options& to, const fpt_arg& it) { to.per = static_cast<Per>(choice(it)); }},
    {"training", [](Options& to, const fpt_arg& it) { to.training = number(it) != 0; }},
};
static_assert(std::size(readers) == std::size(rows));

bool is_communicator(const fpt_arg& option) noexcept { return std::strcmp(option.name, "communicator") == 0; }

/// True for .false., 0 and an empty text. A handle of MPI may be 0.
bool asks_for_nothing(const fpt_arg& option) {
  if (option.dtype == FPT_TEXT) return text_of(option).empty();
  const Scalar value = scalar_of(option);
  if (const auto* truth = std::get_if<bool>(&value)) return !*truth;
  return integer_of(option) == 0 && !is_communicator(option);
}

}  // namespace

Options parse_options(Args options) {
  Options chosen;
  if (const std::string mode(variable_value("FTN_PYTORCH_MODE")); !mode.empty()) {
    const auto is_mode = [](const fpt_arg& option) { return std::strcmp(option.name, "mode") == 0; };
    if (std::none_of(options.begin(), options.end(), is_mode))
      chosen.safe = choice("the environment variable FTN_PYTORCH_MODE", mode, "mode") == 1;
  }
  for (int32_t i = 0; i < options.count; ++i) {
    const std::string label = argument_label("option", i, options[i]);
    require_described(options[i], label);
    if (!options[i].name[0]) fail(FPT_ERR_ARGUMENT, label, " needs a name");
    if (!is_value(options[i])) fail(FPT_ERR_ARGUMENT, where(options[i]), " must be a single value");
    for (const Reader& reader : readers)
      if (reader.name == options[i].name) reader.set(chosen, options[i]);
    if (is_communicator(options[i])) chosen.communicator = integer_of(options[i]);  // Python refuses what is none
  }
  if (chosen.device.empty() && (chosen.flags & FPT_USE_DEVICE)) chosen.device = own_gpu("cuda");
  return chosen;
}

void refuse_python_options(const std::string& file, Args options, bool is_of_ranks) {
  for (const fpt_arg& option : options)
    if (!(is_of_ranks && is_communicator(option)) && !row_of(option.name) &&
        std::strcmp(option.name, "weights_only") != 0 && !asks_for_nothing(option))
      fail(FPT_ERR_ARGUMENT, file, " is a saved model, and ", option.name,
           "= is no option of one that runs without Python: leave out ", option.name, "=");
}

}  // namespace fpt
