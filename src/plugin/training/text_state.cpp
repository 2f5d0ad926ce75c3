// SPDX-License-Identifier: MIT
#include "plugin/training/text_state.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <charconv>
#include <map>
#include <sstream>

#include "plugin/failure.hpp"
#include "plugin/pickle/plain_archive.hpp"
#include "plugin/tensors.hpp"
#include "plugin/training/torch_options.hpp"

namespace fpt::direct {
namespace {

constexpr std::string_view mark = "ftn_pytorch optimizer ", first_line = "ftn_pytorch optimizer 1\n";

/// As "%a" in C, with the decimal separator of the program's locale.
double number_in(std::string word) {
  const std::string given = word;
  std::replace(word.begin(), word.end(), ',', '.');
  const std::size_t sign = word.rfind('-', 0) == 0;
  const bool is_hexadecimal = word.compare(sign, 2, "0x") == 0;
  const char *begin = word.data() + sign + (is_hexadecimal ? 2 : 0), *end = word.data() + word.size();
  double value = 0;
  const auto read =
      std::from_chars(begin, end, value, is_hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (read.ec != std::errc() || read.ptr != end || *begin == '-')
    fail(FPT_ERR_FORMAT, "\"", as_utf8(given), "\" is no number");
  return sign ? -value : value;
}

class TextState {
 public:
  TextState(const std::string& text, const std::vector<NamedTensor>& parameters)
      : text_(text), parameters_(parameters) {}

  c10::IValue value() {
    if (text_.rfind(first_line, 0) != 0)
      fail(FPT_ERR_FORMAT, "it does not begin with \"", first_line.substr(0, first_line.size() - 1),
           "\" (written by a later version?)");
    at_ = first_line.size();
    for (std::vector<std::string> words = line(); words != std::vector<std::string>{"end"}; words = line()) read(words);
    if (kind_.empty()) fail(FPT_ERR_FORMAT, "settings are missing: kind");
    fill();
    auto value = new_plain_dict();
    value.insert("class", class_name(default_settings(kind_).kind));
    value.insert("names", names_);
    value.insert("state", states_);
    auto groups = c10::impl::GenericList(c10::AnyType::get());
    groups.push_back(group());
    value.insert("param_groups", groups);
    return value;
  }

 private:
  std::vector<std::string> line() {
    const std::size_t end = text_.find('\n', at_);
    if (end == std::string::npos) fail(FPT_ERR_FORMAT, "it ends early");
    Plain<std::istringstream> words(text_.substr(at_, end - at_));
    at_ = end + 1;
    std::vector<std::string> result;
    for (std::string word; words >> word;) result.push_back(word);
    return result;
  }

  void read(const std::vector<std::string>& words) {
    const bool is_setting = words.size() == 2 && !parameter_;
    if (is_setting && words[0] == "kind") {
      if (!is_optimizer(words[1])) fail(FPT_ERR_FORMAT, "there is no optimizer \"", as_utf8(words[1]), "\"");
      kind_ = words[1];
    } else if (is_setting) {
      settings_[words[0]] = number_in(words[1]);
    } else if (words.size() == 3 && words[0] == "parameter") {
      begin_parameter(words[1], number_in(words[2]));
    } else {
      add_moment(words);
    }
  }

  void begin_parameter(const std::string& name, double steps) {
    const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&name](const NamedTensor& each) { return each.first == name; });
    if (found == parameters_.end())
      fail(FPT_ERR_FORMAT, "the model has no parameter ", as_utf8(name), " to be trained");
    parameter_ = &*found;
    states_.insert(static_cast<int64_t>(names_.size()), new_plain_dict());
    names_.push_back(name);
    state().insert("step", at::scalar_tensor(steps, at::kFloat));
  }

  void add_moment(const std::vector<std::string>& words) {
    const std::map<std::string_view, const char*> names =
        kind_ == "sgd" ? std::map<std::string_view, const char*>{{"first", "momentum_buffer"}}
                       : std::map<std::string_view, const char*>{
                             {"first", "exp_avg"}, {"second", "exp_avg_sq"}, {"largest", "max_exp_avg_sq"}};
    const auto known = words.empty() ? names.end() : names.find(words[0]);
    if (known == names.end() || !parameter_)
      fail(FPT_ERR_FORMAT, "a line begins with \"", words.empty() ? "" : as_utf8(words[0]), "\"");
    const at::Tensor& parameter = parameter_->second;
    std::string sizes;
    for (const int64_t size : parameter.sizes()) sizes += concat(sizes.empty() ? "" : ",", size);
    const char* type = dtype_name(dtype_of(parameter.scalar_type()));
    if (words.size() < 2 || words[1] != type || (words.size() > 2 ? words[2] : "") != sizes)
      fail(FPT_ERR_FORMAT, words[0], " of ", parameter_->first, " is not of the type and shape of the parameter");
    at::Tensor read = at::empty(parameter.sizes(), at::TensorOptions().dtype(parameter.scalar_type()));
    state().insert(known->second, read);
    moments_.push_back(std::move(read));
  }

  /// The bytes behind the lines.
  void fill() {
    for (const at::Tensor& each : moments_) {
      if (text_.size() - at_ < each.nbytes()) fail(FPT_ERR_FORMAT, "its numbers are incomplete");
      std::memcpy(each.mutable_data_ptr(), text_.data() + at_, each.nbytes());
      at_ += each.nbytes();
    }
  }

  c10::impl::GenericDict state() const { return states_.at(static_cast<int64_t>(names_.size()) - 1).toGenericDict(); }

  /// Of the settings, which all optimizers had, those of this one. A later text has a dampening.
  c10::IValue group() {
    OptimizerSettings known = default_settings(kind_);
    settings_.try_emplace("dampening", 0);
    const auto take = [this](const std::string& name) {
      const auto found = settings_.find(name);
      if (found == settings_.end()) fail(FPT_ERR_FORMAT, "settings are missing: ", name);
      const double value = found->second;
      settings_.erase(found);
      return value;
    };
    auto group = new_plain_dict();
    for (const char* name : {"lr", "momentum", "dampening", "weight_decay", "eps"})
      if (const double value = take(name); real_setting(known, name)) group.insert(name, value);
    for (const char* name : {"nesterov", "amsgrad"}) group.insert(name, take(name) != 0);
    const double beta1 = take("beta1"), beta2 = take("beta2");
    group.insert("betas", c10::ivalue::Tuple::create({beta1, beta2}));
    if (!settings_.empty()) fail(FPT_ERR_FORMAT, "a line begins with \"", as_utf8(settings_.begin()->first), "\"");
    return group;
  }

  const std::string& text_;
  const std::vector<NamedTensor>& parameters_;
  std::size_t at_ = 0;
  std::string kind_;
  std::map<std::string, double> settings_;
  const NamedTensor* parameter_ = nullptr;
  c10::impl::GenericList names_{c10::AnyType::get()};
  c10::impl::GenericDict states_ = new_plain_dict();
  std::vector<at::Tensor> moments_;
};

}  // namespace

bool is_text_state(std::string_view bytes) noexcept { return bytes.substr(0, mark.size()) == mark; }

c10::IValue value_of_text(const std::string& text, const std::vector<NamedTensor>& parameters) {
  return TextState(text, parameters).value();
}

}  // namespace fpt::direct
