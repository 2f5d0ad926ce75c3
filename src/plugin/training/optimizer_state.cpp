// SPDX-License-Identifier: MIT
#include "plugin/training/optimizer_state.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "plugin/tensors.hpp"

namespace fpt::direct {
namespace {

constexpr const char* first_line = "ftn_pytorch optimizer 1";
constexpr const char* kinds[] = {"sgd", "adam", "adamw"};

struct Real {
  const char* name;
  double OptimizerSettings::* value;
};
constexpr Real reals[] = {{"lr", &OptimizerSettings::lr},
                          {"momentum", &OptimizerSettings::momentum},
                          {"weight_decay", &OptimizerSettings::weight_decay},
                          {"beta1", &OptimizerSettings::beta1},
                          {"beta2", &OptimizerSettings::beta2},
                          {"eps", &OptimizerSettings::eps}};

/// Written only where there is one: a setting that came later, which versions before it do not know.
constexpr const char* dampening = "dampening";

struct Logical {
  const char* name;
  int32_t OptimizerSettings::* value;
};
constexpr Logical logicals[] = {{"nesterov", &OptimizerSettings::nesterov}, {"amsgrad", &OptimizerSettings::amsgrad}};

struct Part {
  const char* name;
  at::Tensor Moments::* tensor;
};
constexpr Part parts[] = {{"first", &Moments::first}, {"second", &Moments::second}, {"largest", &Moments::largest}};

/// As "%a" in C, and as float.hex of Python.
std::string hexadecimal(double value) {
  char digits[40];
  char* const end = std::to_chars(std::begin(digits), std::end(digits), std::abs(value), std::chars_format::hex).ptr;
  return concat(std::signbit(value) ? "-" : "", std::isfinite(value) ? "0x" : "", std::string(std::begin(digits), end));
}

/// 0.2.0 wrote the decimal separator of the program's locale.
std::optional<double> number_in(std::string word) {
  std::replace(word.begin(), word.end(), ',', '.');
  const std::size_t sign = word.rfind("-", 0) == 0;
  const std::size_t prefix = word.compare(sign, 2, "0x") == 0 ? 2 : 0;
  const char *begin = word.data() + sign + prefix, *end = word.data() + word.size();
  double value = 0;
  const auto read = std::from_chars(begin, end, value, prefix ? std::chars_format::hex : std::chars_format::general);
  if (read.ec != std::errc() || read.ptr != end || *begin == '-') return {};
  return sign ? -value : value;
}

at::Tensor contiguous_on_host(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void refuse(const std::string& reason) const {
    fail(FPT_ERR_FORMAT, file_, " holds the state of an optimizer that cannot be read: ", reason);
  }

  /// The words of the next line.
  std::vector<std::string> line() {
    const std::size_t end = text_.find('\n', at_);
    if (end == std::string::npos) refuse("it ends early");
    Plain<std::istringstream> words(text_.substr(at_, end - at_));
    at_ = end + 1;
    std::vector<std::string> result;
    for (std::string word; words >> word;) result.push_back(word);
    return result;
  }

  double number(const std::string& word) const {
    const std::optional<double> value = number_in(word);
    if (!value) refuse("\"" + word + "\" is no number");
    return *value;
  }

  void fill(at::Tensor& tensor) {
    const std::size_t size = tensor.nbytes();
    if (text_.size() - at_ < size) refuse("its numbers are incomplete");
    std::memcpy(tensor.data_ptr(), text_.data() + at_, size);
    at_ += size;
  }

 private:
  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

void read_setting(const Reader& reader, const std::vector<std::string>& words, OptimizerSettings& settings) {
  if (words[0] == "kind") {
    const auto kind = std::find(std::begin(kinds), std::end(kinds), words[1]);
    if (kind == std::end(kinds)) reader.refuse("there is no optimizer \"" + words[1] + "\"");
    settings.kind = static_cast<int32_t>(kind - kinds);
    return;
  }
  if (words[0] == dampening) return void(settings.dampening = reader.number(words[1]));
  for (const Real& real : reals)
    if (words[0] == real.name) return void(settings.*real.value = reader.number(words[1]));
  for (const Logical& logical : logicals)
    if (words[0] == logical.name) return void(settings.*logical.value = reader.number(words[1]) != 0);
  reader.refuse("a line begins with \"" + words[0] + "\"");
}

/// Refuse what no optimizer writes: the kernels trust it.
void check(const Reader& reader, const Optimizer& optimizer) {
  const OptimizerSettings& settings = optimizer.settings();
  for (const Real& real : reals)
    if (const double value = settings.*real.value; !std::isfinite(value) || value < 0)
      reader.refuse(concat(real.name, " is ", value));
  if (!std::isfinite(settings.dampening)) reader.refuse(concat(dampening, " is ", settings.dampening));
  const bool is_adam = settings.kind != 0;
  for (const Moments& moments : optimizer.moments()) {
    if (!std::isfinite(moments.steps) || moments.steps < 0)
      reader.refuse(concat(moments.name, " has made ", moments.steps, " steps"));
    const bool complete = (moments.first.defined() || !(is_adam || settings.momentum != 0)) &&
                          (moments.second.defined() || !is_adam) &&
                          (moments.largest.defined() || !(is_adam && settings.amsgrad));
    if (moments.steps > 0 && !complete) reader.refuse(concat(moments.name, " has made steps that left nothing behind"));
  }
}

}  // namespace

std::string text_of_state(const Optimizer& optimizer) {
  const OptimizerSettings& settings = optimizer.settings();
  std::string head = concat(first_line, "\nkind ", kinds[settings.kind], "\n"), body;
  for (const Real& real : reals) head += concat(real.name, " ", hexadecimal(settings.*real.value), "\n");
  if (settings.dampening != 0) head += concat(dampening, " ", hexadecimal(settings.dampening), "\n");
  for (const Logical& logical : logicals) head += concat(logical.name, " ", settings.*logical.value, "\n");
  for (const Moments& moments : optimizer.moments()) {
    head += concat("parameter ", moments.name, " ", static_cast<int64_t>(moments.steps), "\n");
    for (const Part& part : parts) {
      const at::Tensor& tensor = moments.*part.tensor;
      if (!tensor.defined()) continue;
      std::string sizes;
      for (const int64_t size : tensor.sizes()) sizes += concat(sizes.empty() ? "" : ",", size);
      head += concat(part.name, " ", dtype_name(dtype_of(tensor.scalar_type())), " ", sizes, "\n");
      body += bytes_of(contiguous_on_host(tensor));
    }
  }
  return head + "end\n" + body;
}

std::unique_ptr<Optimizer> optimizer_of_state(const std::string& text, const torch::jit::Module& module,
                                              const std::string& file) {
  Reader reader(text, file);
  if (text.rfind(concat(first_line, "\n"), 0) != 0)
    reader.refuse("it does not begin with \"" + std::string(first_line) + "\" (written by a later version?)");
  reader.line();
  OptimizerSettings settings{};
  settings.kind = -1;
  std::size_t known = 0;
  std::vector<std::string> words = reader.line();
  for (; words.size() == 2; words = reader.line()) {
    read_setting(reader, words, settings);
    known += words[0] != dampening;
  }
  if (settings.kind < 0 || known != 1 + std::size(reals) + std::size(logicals)) reader.refuse("settings are missing");
  auto optimizer = std::make_unique<Optimizer>(settings, module, file);

  std::vector<at::Tensor*> tensors;
  Moments* moments = nullptr;
  for (; words.size() != 1 || words[0] != "end"; words = reader.line()) {
    if (words.size() == 3 && words[0] == "parameter") {
      const auto found = std::find_if(optimizer->moments().begin(), optimizer->moments().end(),
                                      [&](const Moments& known) { return known.name == words[1]; });
      if (found == optimizer->moments().end())
        reader.refuse("the model has no parameter " + words[1] + " to be trained");
      moments = &*found;
      moments->steps = reader.number(words[2]);
      continue;
    }
    const auto part = std::find_if(std::begin(parts), std::end(parts),
                                   [&](const Part& known) { return !words.empty() && words[0] == known.name; });
    if (part == std::end(parts) || !moments)
      reader.refuse("a line begins with \"" + (words.empty() ? "" : words[0]) + "\"");
    std::string sizes;
    for (const int64_t size : moments->parameter.sizes()) sizes += concat(sizes.empty() ? "" : ",", size);
    const char* type = dtype_name(dtype_of(moments->parameter.scalar_type()));
    if (words.size() < 2 || words[1] != type || (words.size() > 2 ? words[2] : "") != sizes)
      reader.refuse(
          concat(words[0], " of ", moments->name, " is not ", type, " of shape ", sizes, ", as the parameter is"));
    at::Tensor& tensor = (*moments).*part->tensor;
    tensor = at::empty_like(moments->parameter, at::MemoryFormat::Preserve).detach();
    tensors.push_back(&tensor);
  }
  check(reader, *optimizer);
  const at::NoGradGuard no_gradients;
  for (at::Tensor* tensor : tensors) {
    at::Tensor read = at::empty(tensor->sizes(), at::TensorOptions().dtype(tensor->scalar_type()));
    reader.fill(read);
    tensor->copy_(read);
  }
  return optimizer;
}

}  // namespace fpt::direct
