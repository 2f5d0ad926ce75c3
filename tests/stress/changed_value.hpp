// SPDX-License-Identifier: MIT
/// Values of saved recordings with some of their parts replaced, for fuzz_archive: the file stays one that is taken,
/// and what reads the tapes has to look.
#pragma once

#include <ATen/core/ivalue.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace fpt::direct {

class ChangedValue {
 public:
  explicit ChangedValue(uint64_t seed) : random_(seed) {}

  /// A copy in which up to `times` parts are others.
  c10::IValue of(const c10::IValue& value, std::size_t times) {
    parts_.clear();
    collect(value);
    c10::IValue result = value;
    for (; times-- > 0;) {
      left_ = static_cast<int64_t>(below(parts_.size()));
      result = copy(result);
    }
    return result;
  }

 private:
  std::size_t below(std::size_t n) { return n ? random_() % n : 0; }

  void collect(const c10::IValue& value) {
    parts_.push_back(value);
    if (value.isTuple())
      for (const c10::IValue& element : value.toTupleRef().elements()) collect(element);
    if (value.isList())
      for (const c10::IValue& element : value.toListRef()) collect(element);
    if (value.isGenericDict())
      for (const auto& entry : value.toGenericDict()) collect(entry.value());
  }

  c10::IValue other(const c10::IValue& value) {
    constexpr int64_t numbers[] = {-1, 0, 1, 2, 3, 7, 64, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};
    constexpr double reals[] = {0.0, -1.0, 0.5, 1e308, INFINITY, -INFINITY, NAN};
    switch (below(value.isInt() ? 12 : 9)) {
      case 0:
        return c10::IValue();
      case 1:
        return below(2) == 0;
      case 2:
        return reals[below(std::size(reals))];
      case 3:
        return value.isString() ? value.toStringRef() + "x" : std::string(below(3), 'a');
      case 4:
        return c10::impl::GenericList(c10::AnyType::get());
      case 5:
        return numbers[below(std::size(numbers))];
      case 9:
        return value.toInt() == INT64_MAX ? 0 : value.toInt() + 1;
      case 10:
        return value.toInt() == INT64_MIN ? 0 : value.toInt() - 1;
      case 11:
        return numbers[below(std::size(numbers))];
      default:
        return parts_[below(parts_.size())];  // of another place, which is right somewhere
    }
  }

  /// The part that is the last of `left_` is another one, or, in a list, is left out or stands twice.
  c10::IValue copy(const c10::IValue& value) {
    if (left_-- == 0) return other(value);
    if (value.isTuple()) {
      std::vector<c10::IValue> elements;
      for (const c10::IValue& element : value.toTupleRef().elements()) elements.push_back(copy(element));
      return c10::ivalue::Tuple::create(std::move(elements));
    }
    if (value.isList()) {
      c10::impl::GenericList elements(c10::AnyType::get());
      for (const c10::IValue& element : value.toListRef()) {
        const bool is_next = left_ == 0;
        const std::size_t what = is_next ? below(4) : 3;
        if (what == 0) left_ = -1;
        if (what != 0) elements.push_back(copy(element));
        if (what == 1) elements.push_back(element);
      }
      return elements;
    }
    if (value.isGenericDict()) {
      c10::impl::GenericDict entries(c10::AnyType::get(), c10::AnyType::get());
      for (const auto& entry : value.toGenericDict()) {
        const bool is_next = left_ == 0;
        const std::size_t what = is_next ? below(4) : 3;
        if (what == 0) left_ = -1;
        if (what == 1) entries.insert_or_assign("other", entry.value());
        if (what != 0) entries.insert_or_assign(entry.key(), copy(entry.value()));
      }
      return entries;
    }
    return value;
  }

  std::mt19937_64 random_;
  std::vector<c10::IValue> parts_;
  int64_t left_ = 0;
};

}  // namespace fpt::direct
