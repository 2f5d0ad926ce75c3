// SPDX-License-Identifier: MIT
#include "node/remote_runner.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/paths.hpp"
#include "node/node_arguments.hpp"

namespace fpt {
namespace {

bool is_address(const std::string& file) { return file.find("://") != std::string::npos; }

}  // namespace

RemoteRunner::RemoteRunner(const std::string& file, const Options& options, const char* per)
    : file_(is_address(file) ? file : absolute_path(file).string()),
      name_(std::filesystem::path(file).stem().string()),
      per_(concat("per=\"", per, '"')),
      reading_{options.same_layout, options.cast, /*brings_to_host=*/true} {}

std::uint64_t RemoteRunner::send_load(int32_t kind, Args options, Args config, SegmentWriter& writer,
                                      const Segment& memory) const {
  Request{Wish::load, file_, kind}.write(writer);
  const CallName call{"load", {}};
  const SentArguments sent(options, "option", call, writer), values(config, "config", call, writer);
  return hash_of({memory.at(0), static_cast<std::size_t>(writer.end())});
}

std::vector<fpt_arg> RemoteRunner::without(Args given, std::initializer_list<const char*> names) {
  std::vector<fpt_arg> kept;
  for (const fpt_arg& option : given)
    if (std::none_of(names.begin(), names.end(), [&](const char* name) { return std::strcmp(option.name, name) == 0; }))
      kept.push_back(option);
  return kept;
}

RemoteRunner::Reply RemoteRunner::read_reply(SegmentReader& reader) {
  Reply reply{Outcome::read(reader), nullptr};
  for (const std::string& each : reply.outcome.warnings) warn(each);
  if (reply.outcome.status != FPT_OK) fail(reply.outcome.status, reply.outcome.text);
  if (reply.outcome.has_results) reply.results = std::make_shared<NodeAnswer>(reader);
  return reply;
}

bool RemoteRunner::has(const std::string& function) {
  return ask({Wish::has, function}, name_of("has")).outcome.number != 0;
}

int64_t RemoteRunner::restore(const std::string& file, bool fallback, int64_t step) {
  return ask({Wish::restore, absolute_path(file).string(), fallback, step}, name_of("restore")).outcome.number;
}

void RemoteRunner::run(const CallRequest& wanted) {
  if (wanted.object) refuse("its objects cannot be used here");
  const CallName call = name_of(wanted.function);
  const Targets& targets = wanted.targets;
  Request request{wanted.training ? Wish::train : Wish::call, wanted.function, wanted.flags};
  request.is_list = wanted.is_list;
  if (wanted.training) {
    const Outcome said = ask(request, call, wanted.inputs, wanted.goals, "target").outcome;
    *wanted.training = {static_cast<int32_t>(said.number), said.loss};
    return;
  }
  const Outputs outputs(targets.outputs);
  if (!outputs.device().is_host())
    fail(FPT_ERR_DEVICE, "an output of ", call, " is in memory of ", device_name(outputs.device()),
         ", and the process that computes with ", per_, " has arrays of the host only: load without per=");
  request.second = targets.results || targets.tensor;
  const Reply reply = ask(request, call, wanted.inputs, outputs.get());
  outputs.written();
  if (!reply.results) return;
  TensorPtr tensor = targets.tensor ? single_tensor(*reply.results, call, reading_) : nullptr;
  if (targets.results) store_results(targets.results, Results(reply.results, call, reading_));
  if (tensor) *targets.tensor = std::move(tensor);
}

}  // namespace fpt
