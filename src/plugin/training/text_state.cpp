// SPDX-License-Identifier: MIT
/// The state of an optimizer as 0.2.0 wrote it: lines up to "end", then the bytes of the tensors one after the other.
///
///     ftn_pytorch optimizer 1
///     kind adam
///     lr 0x1.0624dd2f1a9fcp-10
///     (momentum, weight_decay, beta1, beta2, eps, nesterov, amsgrad likewise)
///     parameter 0.weight 25
///     first float32 64,16
///     second float32 64,16
///     end
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <charconv>
#include <map>
#include <sstream>

#include "plugin/failure.hpp"
#include "plugin/pickle/archive_writer.hpp"
#include "plugin/tensors.hpp"
#include "plugin/training/optimizer_state.hpp"

namespace fpt::direct {
namespace {

constexpr std::string_view first_line = "ftn_pytorch optimizer 1\n", last_line = "\nend\n";

/// As "%a" in C, with the decimal separator of the program's locale.
double number_in(std::string word) {
  std::replace(word.begin(), word.end(), ',', '.');
  const std::size_t sign = word.rfind('-', 0) == 0;
  const bool is_hex = word.compare(sign, 2, "0x") == 0;
  const char *begin = word.data() + sign + (is_hex ? 2 : 0), *end = word.data() + word.size();
  double value = 0;
  const auto read = std::from_chars(begin, end, value, is_hex ? std::chars_format::hex : std::chars_format::general);
  if (read.ec != std::errc() || read.ptr != end || *begin == '-')
    fail(FPT_ERR_FORMAT, "\"", as_utf8(word), "\" is no number");
  return sign ? -value : value;
}

/// What torch.optim calls a tensor; null for a line that has none.
const char* moment_named(std::string_view word, bool is_sgd) {
  if (word == "first") return is_sgd ? "momentum_buffer" : "exp_avg";
  return word == "second" ? "exp_avg_sq" : word == "largest" ? "max_exp_avg_sq" : nullptr;
}

/// Memory for the numbers of a line, "float32 64,16".
at::Tensor tensor_for(const NamedTensor& parameter, const std::string& moment, const std::string& described) {
  std::string wanted = concat(dtype_name(dtype_of(parameter.second.scalar_type())), " ");
  for (const int64_t size : parameter.second.sizes()) wanted += concat(wanted.back() == ' ' ? "" : ",", size);
  if (described != wanted) fail_of_moment(moment, parameter.first);
  return at::empty(parameter.second.sizes(), at::TensorOptions().dtype(parameter.second.scalar_type()));
}

c10::IValue group_of(std::map<std::string, double> settings) {
  const auto take = [&settings](const std::string& name) {
    const auto found = settings.extract(name);
    if (!found) fail(FPT_ERR_FORMAT, "settings are missing: ", name);
    return found.mapped();
  };
  auto group = new_plain_dict();
  for (const char* name : {"lr", "momentum", "dampening", "weight_decay", "eps"}) group.insert(name, take(name));
  for (const char* name : {"nesterov", "amsgrad"}) group.insert(name, take(name) != 0);
  const double beta1 = take("beta1"), beta2 = take("beta2");
  group.insert("betas", c10::ivalue::Tuple::create({beta1, beta2}));
  if (!settings.empty()) fail(FPT_ERR_FORMAT, "a line begins with \"", as_utf8(settings.begin()->first), "\"");
  return group;
}

}  // namespace

c10::IValue value_of_text(const std::string& text, const std::vector<NamedTensor>& parameters) {
  if (text.rfind(first_line, 0) != 0)
    fail(FPT_ERR_FORMAT, "it does not begin with \"", first_line.substr(0, first_line.size() - 1),
         "\" (written by a later version?)");
  const std::size_t end = text.find(last_line);
  if (end == std::string::npos) fail(FPT_ERR_FORMAT, "it ends early");
  std::size_t at = end + last_line.size();  // of the bytes
  std::string kind, line;
  std::map<std::string, double> settings{{"dampening", 0}};  // which came later
  auto names = c10::impl::GenericList(c10::AnyType::get()), groups = names.copy();
  auto states = new_plain_dict(), state = new_plain_dict();
  const NamedTensor* parameter = nullptr;
  Plain<std::istringstream> lines(text.substr(first_line.size(), end - first_line.size()));
  while (std::getline(lines, line)) {
    Plain<std::istringstream> words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    const char* const moment = moment_named(first, kind == "sgd");
    if (first == "kind") {
      kind = second;
    } else if (first == "parameter") {
      const auto found = std::find_if(parameters.begin(), parameters.end(),
                                      [&second](const NamedTensor& each) { return each.first == second; });
      if (found == parameters.end()) fail_without_parameter(second);
      parameter = &*found;
      state = new_plain_dict();
      state.insert("step", at::scalar_tensor(number_in(third), at::kFloat));
      states.insert(static_cast<int64_t>(names.size()), state);
      names.push_back(second);
    } else if (moment && parameter) {
      const at::Tensor read = tensor_for(*parameter, first, concat(second, " ", third));
      if (text.size() - at < read.nbytes()) fail(FPT_ERR_FORMAT, "its numbers are incomplete");
      std::memcpy(read.mutable_data_ptr(), text.data() + at, read.nbytes());
      at += read.nbytes();
      state.insert(moment, read);
    } else if (!moment && !parameter) {
      settings[first] = number_in(second);
    } else {
      fail(FPT_ERR_FORMAT, "a line begins with \"", as_utf8(first), "\"");
    }
  }
  if (kind.empty()) fail(FPT_ERR_FORMAT, "settings are missing: kind");
  groups.push_back(group_of(std::move(settings)));
  auto value = new_plain_dict();
  const std::optional<int32_t> known = kind_of_optimizer(kind);
  value.insert("class", known ? class_name(*known) : kind);
  value.insert("names", names);
  value.insert("state", states);
  value.insert("param_groups", groups);
  return value;
}

}  // namespace fpt::direct
