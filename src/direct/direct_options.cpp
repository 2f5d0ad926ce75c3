// SPDX-License-Identifier: MIT
#include "direct/direct_options.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "arrays/arg.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

std::string joined(std::initializer_list<const char*> names) {
  std::string text;
  for (const char* name : names) text += concat(text.empty() ? "" : ", ", name);
  return text;
}

/// Place of a text among the valid ones, of which the first is the default.
int32_t choice(const std::string& where, const std::string& value, std::initializer_list<const char*> valid) {
  const auto found = std::find(valid.begin(), valid.end(), value);
  if (found == valid.end()) fail(FPT_ERR_ARGUMENT, where, " is '", value, "'; valid are ", joined(valid));
  return static_cast<int32_t>(found - valid.begin());
}

std::string text_option(const fpt_arg& option) {
  if (option.dtype != FPT_TEXT) fail(FPT_ERR_ARGUMENT, "load(..., ", option.name, "=) must be a text");
  return text_of(option);
}

/// Number of a scalar; `whole` where it has to be an integer or a logical.
double number_of(const fpt_arg& arg, bool whole) {
  const unsigned char* bytes = arg.u.value;
  const auto read = [bytes](auto value) {
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  };
  if (arg.rank == 0 && arg.access != FPT_OUT && arg.status == FPT_OK) switch (arg.dtype) {
      case FPT_BOOL:
        return bytes[0] != 0;
      case FPT_INT8:
        return read(int8_t{});
      case FPT_INT16:
        return read(int16_t{});
      case FPT_INT32:
        return read(int32_t{});
      case FPT_INT64:
        return read(int64_t{});
      case FPT_FLOAT32:
        if (!whole) return read(float{});
        break;
      case FPT_FLOAT64:
        if (!whole) return read(double{});
        break;
      default:
        break;
    }
  fail(FPT_ERR_ARGUMENT, arg.name[0] ? arg.name : "the learning rate", " must be a single ", whole ? "integer or logical" : "real number",
       " passed by value");
}

int32_t integer_option(const fpt_arg& option, int32_t largest) {
  const double value = number_of(option, true);
  if (value < 0 || value > largest)
    fail(FPT_ERR_ARGUMENT, option.name, " is ", value, ", it must be between 0 and ", largest);
  return static_cast<int32_t>(value);
}

constexpr std::initializer_list<const char*> modes = {"checked", "safe"};

/// A setting of an optimizer, the optimizers that have it (a bit each), and the smallest and largest value.
struct Setting {
  const char* name;
  int kinds;
  double lowest, highest;
  double fpt_direct_optimizer::* real;
  int32_t fpt_direct_optimizer::* logical;
};

constexpr double unlimited = 1e300;
constexpr Setting known_settings[] = {
    {"lr", 7, 0, unlimited, &fpt_direct_optimizer::lr, nullptr},
    {"momentum", 1, 0, unlimited, &fpt_direct_optimizer::momentum, nullptr},
    {"nesterov", 1, 0, 1, nullptr, &fpt_direct_optimizer::nesterov},
    {"weight_decay", 7, 0, unlimited, &fpt_direct_optimizer::weight_decay, nullptr},
    {"beta1", 6, 0, 1, &fpt_direct_optimizer::beta1, nullptr},
    {"beta2", 6, 0, 1, &fpt_direct_optimizer::beta2, nullptr},
    {"eps", 6, 0, unlimited, &fpt_direct_optimizer::eps, nullptr},
    {"amsgrad", 6, 0, 1, nullptr, &fpt_direct_optimizer::amsgrad},
};

constexpr const char* optimizers[] = {"sgd", "adam", "adamw"};

}  // namespace

std::string backend_option(const fpt_arg* options, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (std::strcmp(options[i].name, "backend") == 0 && options[i].dtype == FPT_TEXT) return text_of(options[i]);
  return "auto";
}

DirectOptions direct_options(const fpt_arg* options, int32_t count) {
  DirectOptions chosen;
  bool has_mode = false;
  for (int32_t i = 0; i < count; ++i) {
    const fpt_arg& option = options[i];
    require_described(option, concat("option ", i + 1));
    const std::string name = option.name, where = "load(..., " + name + "=)";
    if (name == "layout") {
      chosen.same_layout = choice(where, text_option(option), {"reversed", "same"}) == 1;
    } else if (name == "mode") {
      chosen.mode = choice(where, text_option(option), modes);
      has_mode = true;
    } else if (name == "dtype") {
      const int32_t found = choice(where, text_option(option), {"keep", "float32", "float64"});
      chosen.float_dtype = found == 0 ? FPT_NONE : found == 1 ? FPT_FLOAT32 : FPT_FLOAT64;
    } else if (name == "inputs") {
      chosen.copies_inputs = choice(where, text_option(option), {"share", "copy"}) == 1;
    } else if (name == "backend") {
      choice(where, text_option(option), {"auto", "python", "direct"});
    } else if (name == "device") {
      chosen.device = text_option(option);
    } else if (name == "cast") {
      chosen.cast = integer_option(option, 1) != 0;
    } else if (name == "flags") {
      chosen.flags = integer_option(option, FPT_USE_DEVICE | FPT_USE_INFERENCE_MODE);
    } else if (name == "weights_only") {
      integer_option(option, 1);  // nothing that the direct path reads runs code of the file
    } else if (name == "compile" || name == "compile_backend") {
      if (name == "compile_backend" || option.dtype == FPT_TEXT || integer_option(option, 1) != 0)
        fail(FPT_ERR_ARGUMENT, "this is a saved model, which torch.compile cannot work on: leave ", name, "= away");
    } else {
      fail(FPT_ERR_ARGUMENT, "load has no option '", name,
           "' for a saved model; valid are layout, mode, dtype, inputs, backend, device, cast, flags, weights_only");
    }
  }
  const char* variable = std::getenv("FTN_PYTORCH_MODE");
  if (!has_mode && variable && *variable)
    chosen.mode = choice("the environment variable FTN_PYTORCH_MODE", variable, modes);
  if (chosen.device.empty() && (chosen.flags & FPT_USE_DEVICE)) chosen.device = "cuda";
  return chosen;
}

fpt_direct_optimizer direct_optimizer(std::string_view name, const fpt_arg* settings, int32_t count) {
  const auto kind = static_cast<int32_t>(std::find(std::begin(optimizers), std::end(optimizers), name) - optimizers);
  if (kind == static_cast<int32_t>(std::size(optimizers))) fail(FPT_ERR_HOOK, "there is no optimizer ", name, "; there are sgd, adam, adamw");
  fpt_direct_optimizer chosen{kind, 0, 0, -1, 0, kind == 2 ? 1e-2 : 0, 0.9, 0.999, 1e-8};
  for (int32_t i = 0; i < count; ++i) {
    const fpt_arg& arg = settings[i];
    const std::string_view given = arg.name[0] ? arg.name : i == 0 ? "lr" : "";
    const auto* setting = std::find_if(std::begin(known_settings), std::end(known_settings), [&](const Setting& known) {
      return known.name == given && (known.kinds >> kind & 1);
    });
    if (setting == std::end(known_settings))
      fail(FPT_ERR_SIGNATURE, "create_optimizer_", name, " has no setting '", given, "'");
    const double value = number_of(arg, setting->logical != nullptr);
    if (!(value >= setting->lowest && value <= setting->highest) || (setting->highest == 1 && setting->real && value == 1))
      fail(FPT_ERR_ARGUMENT, "create_optimizer_", name, ": ", given, " is ", value, ", it must be at least ", setting->lowest,
           setting->highest == 1 ? " and less than 1" : " and finite");
    if (setting->real)
      chosen.*setting->real = value;
    else
      chosen.*setting->logical = value != 0;
  }
  if (chosen.lr < 0) fail(FPT_ERR_SIGNATURE, "create_optimizer_", name, " needs a learning rate, lr");
  if (chosen.nesterov && chosen.momentum <= 0)
    fail(FPT_ERR_ARGUMENT, "create_optimizer_sgd: nesterov needs a momentum greater than 0");
  return chosen;
}

bool is_own_function(std::string_view name) {
  if (name == "ftn_pytorch_train" || name == "ftn_pytorch_save" || name == "ftn_pytorch_restore") return true;
  return std::any_of(std::begin(optimizers), std::end(optimizers), [&](const char* optimizer) {
    return name == std::string("ftn_pytorch_create_optimizer_") + optimizer;
  });
}

}  // namespace fpt
