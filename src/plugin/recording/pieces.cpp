// SPDX-License-Identifier: MIT
#include "plugin/recording/pieces.hpp"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <ctime>

namespace fpt::direct {
namespace {

/// RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  constexpr const char* alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? alphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string generator_text(const at::Tensor& generator) {
  if (!generator.defined()) fail(FPT_ERR_FORMAT, "its text refers to the state of a generator that it does not have");
  const at::Tensor bytes = generator.contiguous();
  return base64({static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.nbytes())});
}

double number_named(const std::string& name, const HoleValues& values) {
  for (const auto& [known, value] : values.numbers)
    if (known == name) return value;
  fail(FPT_ERR_FORMAT, "its text refers to the number ", as_utf8(name.substr(0, 200)), ", which it does not have");
}

std::string value_of_hole(const c10::IValue& hole, const HoleValues& values) {
  const auto& parts = hole.toTupleRef().elements();
  const bool has_name = parts.size() == 2 && parts[1].isString();
  if (parts.size() == 0 || !parts[0].isString() || (parts.size() != 1 && !has_name))
    fail(FPT_ERR_FORMAT, "its text has a hole that has no name");
  const std::string& kind = parts[0].toStringRef();
  if (has_name && kind == "number") return json_number(number_named(parts[1].toStringRef(), values));
  if (!has_name && kind == "generator") return generator_text(values.generator);
  if (!has_name && kind == "step") return values.step ? std::to_string(*values.step) : "null";
  if (!has_name && kind == "written") return json_text(values.written);
  if (!has_name && kind == "host") return json_text(values.host);
  if (!has_name && kind == "rank") return std::to_string(values.rank);
  if (!has_name && kind == "rank_of_job") return std::to_string(values.rank_of_job);
  if (!has_name && kind == "ranks") return std::to_string(values.ranks);
  if (!has_name && kind == "job") return values.job ? json_text(*values.job) : "null";
  fail(FPT_ERR_FORMAT, "its text has a hole for \"", as_utf8(kind.substr(0, 200)), "\"");
}

}  // namespace

HoleValues HoleValues::of_this_process(Rank own) {
  HoleValues values;
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[256] = "";
  values.written.assign(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts));
  if (gethostname(text, sizeof text - 1) == 0) values.host = text;
  values.rank = own.number;
  values.ranks = own.count;
  values.rank_of_job = fpt::rank().number;
  values.job = fpt::job();
  return values;
}

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[40];
  std::string text(digits, std::to_chars(std::begin(digits), std::end(digits), value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char each : as_utf8(text)) {
    if (static_cast<unsigned char>(each) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", each);
      result += escaped;
    } else {
      if (each == '"' || each == '\\') result += '\\';
      result += each;
    }
  }
  return result + "\"";
}

std::string filled(const c10::IValue& pieces, const HoleValues& values) {
  return filled_with_holes(pieces, values).text;
}

ftr::FilledText filled_with_holes(const c10::IValue& pieces, const HoleValues& values) {
  if (!pieces.isList()) fail(FPT_ERR_FORMAT, "its text is no list of pieces");
  std::string text;
  c10::impl::GenericList holes(c10::AnyType::get());
  for (const c10::IValue& piece : pieces.toListRef()) {
    if (piece.isString()) {
      text += piece.toStringRef();
    } else if (piece.isTuple()) {
      const auto begin = static_cast<int64_t>(text.size());
      text += value_of_hole(piece, values);
      holes.push_back(c10::ivalue::Tuple::create({begin, static_cast<int64_t>(text.size()), piece}));
    } else {
      fail(FPT_ERR_FORMAT, "a piece of its text is neither a text nor a hole");
    }
  }
  return {std::move(text), std::move(holes)};
}

}  // namespace fpt::direct
