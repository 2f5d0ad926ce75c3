// SPDX-License-Identifier: MIT
#include "node/node_arguments.hpp"

#include <cstring>
#include <utility>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "arrays/texts.hpp"
#include "base/error.hpp"
#include "direct/object_arguments.hpp"
#include "values/assignment.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

/// The same array where it was sent to.
Array sent_array(const Array& memory, char* place) {
  Array packed = memory;
  packed.data = place;
  set_contiguous(packed);
  return packed;
}

}  // namespace

SentArguments::SentArguments(Args args, const char* what, const CallName& call, SegmentWriter& writer, Places* places) {
  writer.integer(args.count);
  for (int32_t i = 0; i < args.count; ++i) {
    const auto label = [&] { return concat(argument_label(what, i, args[i]), " of ", call); };
    if (args[i].status != FPT_OK) require_described(args[i], label());
    std::shared_ptr<const std::string> text;
    if (has_kept_text(args[i])) text = text_owner(args[i], label());
    TensorPtr tensor;
    const fpt_arg arg = is_tensor_handle(args[i].handle) ? memory_of(args[i], label(), tensor) : own(args[i]);
    if (!is_value(arg))
      if (const Device device = device_of(arg.data); !device.is_host())
        fail(FPT_ERR_DEVICE, label(), " is in memory of ", device_name(device), ", and only arrays of the host reach ",
             "the process that computes for the rank: load without per=");
    send(arg, writer, places, std::move(tensor));
  }
}

/// A tensor as memory.
/// @param tensor  receives it where torch is to be told of a change
fpt_arg SentArguments::memory_of(const fpt_arg& arg, const std::string& label, TensorPtr& tensor) {
  const TensorPtr given = tensor_at(arg.handle);
  if (!given->is_plain_memory()) {
    if (records_gradients(*given))
      fail(FPT_ERR_ARGUMENT, label, " requires gradients, which do not reach the process that computes for the rank: ",
           "load without per=, or switch gradients off with scope%no_grad()");
    tensor = given;
  }
  held_.push_back(given);
  fpt_arg found = given->described_as(arg);
  found.handle = 0;
  return found;
}

/// An argument that is no tensor. What torch_copy has made ends with the call; who computes makes a copy of its own.
fpt_arg SentArguments::own(const fpt_arg& arg) {
  fpt_arg found = arg;
  if (Storage copy = claim_copy(arg)) copies_.push_back(std::move(copy));
  found.handle = 0;
  return found;
}

void SentArguments::send(const fpt_arg& arg, SegmentWriter& writer, Places* places, TensorPtr tensor) {
  fpt_arg plain = arg;
  plain.data = nullptr;  // addresses mean nothing elsewhere
  if (!is_value(arg)) pack(plain);
  writer.object(plain);
  if (arg.dtype == FPT_TEXT && arg.access == FPT_OUT) {
    char* place = writer.block(arg.length);
    std::memcpy(place, arg.data, static_cast<std::size_t>(arg.length));
    writable_.push_back({row_of(arg.data, FPT_INT8, arg.length), place, nullptr});
  } else if (arg.dtype == FPT_TEXT) {
    writer.text(text_of(arg));
  } else if (!is_value(arg)) {
    const Array memory = array_of(arg);
    char* place = places ? places->next() : writer.block(static_cast<int64_t>(byte_count(memory)));
    copy_same_type(memory, sent_array(memory, place));
    if (arg.access == FPT_OUT) writable_.push_back({memory, place, std::move(tensor)});
  }
}

void SentArguments::fetch() const {
  for (const Writable& each : writable_) {
    copy_same_type(sent_array(each.memory, each.sent), each.memory);
    if (each.tensor) note_written(each.tensor);
  }
}

void pack(fpt_arg& arg) noexcept {
  Array packed = array_of(arg);
  set_contiguous(packed);
  get_axes(packed, arg.u.array.extents, arg.u.array.strides);
}

std::vector<fpt_arg> received_arguments(SegmentReader& reader, Places* places) {
  std::vector<fpt_arg> args(static_cast<std::size_t>(reader.integer()));
  for (fpt_arg& arg : args) {
    reader.object(arg);
    if (arg.dtype == FPT_TEXT && arg.access == FPT_OUT) {
      arg.data = reader.block(arg.length);
    } else if (arg.dtype == FPT_TEXT) {
      const fpt_arg sent = arg;
      const std::string_view text = reader.text();
      describe_text(arg, text.data(), static_cast<int64_t>(text.size()), FPT_IN);
      std::memcpy(arg.name, sent.name, sizeof arg.name);
    } else if (!is_value(arg)) {
      arg.data = places ? places->next() : reader.block(static_cast<int64_t>(byte_count(array_of(arg))));
    }
  }
  return args;
}

void make_copies(std::vector<fpt_arg>& args) {
  for (fpt_arg& arg : args) {
    if (arg.access != FPT_COPY || is_value(arg) || arg.dtype == FPT_TEXT) continue;
    const fpt_arg sent = arg;
    describe_array(arg, sent.data, sent.dtype, sent.rank, sent.u.array.extents, sent.u.array.strides, FPT_COPY);
    std::memcpy(arg.name, sent.name, sizeof arg.name);
  }
}

}  // namespace fpt
