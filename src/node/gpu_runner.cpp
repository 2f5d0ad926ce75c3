// SPDX-License-Identifier: MIT
#include "node/gpu_runner.hpp"

#include <cstdlib>
#include <utility>

#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "node/node_arguments.hpp"
#include "node/rank_place.hpp"

namespace fpt {
namespace {

constexpr double ranks_wait = 1800;  // seconds
constexpr const char* purpose = "load(..., per=\"gpu\")";
constexpr std::size_t most_forms = 1024;

/// Ranks with the same text use the same GPU, if they are on one node.
std::string place_of(const std::string& device) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return concat(device, '|', visible ? visible : "all");
}

/// What two calls have in common whose arrays can lie in the same places; empty for calls with tensors.
std::string form_of(const Request& request, Args inputs, Args outputs) {
  std::string form =
      concat(static_cast<int64_t>(request.wish), ' ', request.first, ' ', request.gradients, request.text, '\n');
  const auto add = [&form](int64_t number) { form.append(reinterpret_cast<const char*>(&number), sizeof number); };
  for (const Args args : {inputs, outputs}) {
    add(args.count);
    for (const fpt_arg& arg : args) {
      if (arg.status != FPT_OK || is_tensor_handle(arg.handle)) return {};
      add(arg.dtype);
      add(arg.rank);
      add(arg.access);
      form += arg.name;
      form += '\n';
      if (arg.dtype == FPT_TEXT || is_value(arg)) continue;
      for (int32_t axis = 0; axis < arg.rank; ++axis) add(arg.u.array.extents[axis]);
    }
  }
  return form;
}

}  // namespace

GpuRunner::GpuRunner(const std::string& file, const Options& options)
    : RemoteRunner(file, options, "gpu"),
      device_(options.device == "cuda" ? "cuda:0" : options.device),
      ranks_(std::make_unique<MpiSum>(options.communicator.value_or(0), ranks_wait)) {}

std::unique_ptr<Runner> GpuRunner::load(int32_t kind, const std::string& file, const Options& options, Args given,
                                        Args config) {
  if (!options.communicator)
    fail(FPT_ERR_ARGUMENT, purpose, " needs communicator=, which tells the ranks that share a GPU");
  if (options.device.compare(0, 4, "cuda") != 0 && options.device != "cpu")
    fail(FPT_ERR_DEVICE, purpose, " needs device=\"cuda\", or another GPU", options.device.empty() ? "" : ": it is \"",
         options.device, options.device.empty() ? "" : "\"");
  std::unique_ptr<GpuRunner> runner(new GpuRunner(file, options));
  SegmentWriter writer(runner->owner_.memory(), 0);
  std::vector<fpt_arg> sent = without(given, {"per", "communicator", "device"});
  sent.emplace_back();  // the last: owner_process.cpp reads it
  describe_text(sent.back(), runner->device_.data(), static_cast<int64_t>(runner->device_.size()), FPT_IN);
  name_arg(sent.back(), "device", 6);
  const std::uint64_t request = runner->send_load(kind, sent, config, writer, runner->owner_.memory());
  RankPlace::here(runner->ranks_->rank(), runner->ranks_->size()).write(writer);
  const std::string place = place_of(runner->device_);
  if (runner->ranks_->rank() == 0) warn_of_observers("per=\"gpu\"");
  runner->node_ = std::make_unique<Meeting>(*runner->ranks_, request, Sharing{purpose, place, owner_role});
  if (!runner->node_->make_worker(runner->owner_) || !runner->owner_.wait())
    fail(FPT_ERR_INTERPRETER, "the process that loads ", file, " for the ranks of ", runner->device_,
         " has ended: look ", "at what it has written to standard error");
  SegmentReader reader(runner->owner_.memory(), writer.end());
  static_cast<void>(reader.integer());  // Answering::ended
  const Outcome outcome = read_reply(reader).outcome;
  runner->backend_ = outcome.text;
  runner->number_ = outcome.number;
  Descriptor memory = runner->node_->memory();
  if (!memory) runner->lose_owner({"load", {}});
  runner->board_ = std::make_unique<Board>(std::move(memory));
  return runner;
}

GpuRunner::Reply GpuRunner::ask(Request request, const CallName& call, Args inputs, Args others,
                                const char* others_name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!end_.empty()) fail(FPT_ERR_PYTHON, end_);
  std::string form = form_of(request, inputs, others);
  const auto known = form.empty() ? places_.end() : places_.find(form);
  const bool has_places = known != places_.end();
  if (has_places) request.places = known->second.number;
  static const std::vector<int64_t> none;
  Places places(board_->memory(), has_places ? known->second.begins : none);
  SegmentWriter writer(owner_.memory(), 0);
  request.write(writer);
  const SentArguments given(inputs, "input", call, writer, has_places ? &places : nullptr),
      wanted(others, others_name, call, writer, has_places ? &places : nullptr);
  ask_owner(*board_, number_, owner_);
  if (!wait_for_owner(*board_, number_, owner_)) lose_owner(call);
  SegmentReader reader(owner_.memory(), writer.end());
  static_cast<void>(reader.integer());  // Answering::ended: the owner asks for nothing
  Reply reply = read_reply(reader);
  given.fetch();
  wanted.fetch();
  const bool predicts = request.wish == Wish::call && !request.is_list;
  if (!predicts || reply.results || reply.outcome.number == 0 || form.empty()) return reply;
  Known next{reply.outcome.number, std::vector<int64_t>(static_cast<std::size_t>(reader.integer()))};
  for (int64_t& begin : next.begins) begin = reader.integer();
  if (places_.size() == most_forms) places_.clear();
  places_[std::move(form)] = std::move(next);
  return reply;
}

void GpuRunner::lose_owner(const CallName& call) {
  end_ = concat("the process that computes on ", device_, " for the ranks of this node has ended, in ", call,
                " of a rank or before. Its state is lost: load again");
  fail(FPT_ERR_PYTHON, end_);
}

void GpuRunner::refuse(std::string_view what) const {
  fail(FPT_ERR_ARGUMENT, name_, " is loaded with per=\"gpu\", where one process predicts for all ranks of a GPU, and ",
       what, ". Load without per=, and share the GPU by MPS, see gpu.md");
}

void GpuRunner::reload() { ask({Wish::reload, {}}, name_of("reload")); }

void GpuRunner::save(const std::string&) { refuse("it learns nothing that could be saved"); }

void GpuRunner::checkpoint(const std::string&, int64_t, int64_t) { refuse("it learns nothing that could be kept"); }

void GpuRunner::run(const CallRequest& request) {
  if (request.training) refuse("it does not train");
  RemoteRunner::run(request);
}

void GpuRunner::set_stream(void*, bool) { refuse("it has no stream of the program"); }

}  // namespace fpt
