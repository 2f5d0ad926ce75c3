// SPDX-License-Identifier: MIT
#include "values/argument_list.hpp"

#include <utility>

#include "base/error.hpp"

namespace fpt {
namespace {

using Wraps = HandleTable<ArgumentList, HandleKind::wrap>;

Wraps& wraps() {
  static Wraps& table = *new Wraps("a list of tensors", "create");
  return table;
}

}  // namespace

void ArgumentList::add(const fpt_arg& arg) {
  fpt_arg item = arg;
  if (args_.size() == args_.capacity()) args_.reserve(2 * args_.size() + 4);
  const bool owns = is_tensor_handle(arg.handle) || (arg.access == FPT_COPY && arg.rank > 0 && arg.dtype != FPT_TEXT);
  if (owns) {
    item.handle = insert_unscoped(Tensor::of_arg(arg));  // of memory of the caller, too: it may have a graph
    item.access = FPT_OUT;
  } else {
    require_described(arg, "the argument");
  }
  args_.push_back(item);
}

void ArgumentList::clear() noexcept {
  for (const fpt_arg& arg : args_)
    if (is_tensor_handle(arg.handle)) free_tensor(arg.handle);
  args_.clear();
}

HeldArguments::HeldArguments(const ArgumentList& list) : args_(list.args_) {
  for (const fpt_arg& arg : args_)
    if (is_tensor_handle(arg.handle)) tensors_.push_back(named_at(arg.handle));
}

ArgumentList& wrap_at(int64_t handle) { return wraps().at(handle); }

void create_wrap(int64_t* handle) {
  if (ArgumentList* known = wraps().find(*handle))
    known->clear();
  else
    *handle = wraps().insert(std::make_unique<ArgumentList>());
}

void free_wrap(int64_t handle) noexcept { wraps().remove(handle); }

}  // namespace fpt
