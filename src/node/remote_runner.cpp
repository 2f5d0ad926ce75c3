// SPDX-License-Identifier: MIT
#include "node/remote_runner.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "node/node_arguments.hpp"
#include "node/node_worker.hpp"
#include "node/places.hpp"
#include "node/rank_place.hpp"

namespace fpt {
namespace {

constexpr double ranks_wait = 1800;  // seconds
constexpr std::chrono::seconds worker_ends{30};
constexpr std::size_t most_forms = 1024;

bool is_address(const std::string& file) { return file.find("://") != std::string::npos; }

/// Which process computes, and for whom.
Sharing sharing_of(const Options& options) {
  const std::string& device = options.device;
  const bool is_node = options.per == Per::node, is_gpu = device.compare(0, 4, "cuda") == 0;
  if (!options.communicator)
    fail(FPT_ERR_ARGUMENT, "load(..., per=\"", is_node ? "node" : "gpu",
         "\") needs communicator=, which tells the ranks that share ", is_node ? "the node" : "a GPU");
  if (is_node && !device.empty() && device != "cpu")
    fail(FPT_ERR_DEVICE, "load(..., per=\"node\") computes on the host, and device is \"", device,
         "\": per=\"gpu\" has one process for the ranks of a GPU");
  if (is_node) return {"per=\"node\"", {}, {}};
  if (!is_gpu && device != "cpu")
    fail(FPT_ERR_DEVICE, "load(..., per=\"gpu\") needs device=\"cuda\", or another GPU",
         device.empty() ? "" : ": it is \"", device, device.empty() ? "" : "\"");
  const std::string gpu = device == "cuda" ? "cuda:0" : device;
  // Ranks with the same text use the same GPU, if they are on one node
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return {"per=\"gpu\"", concat(gpu, '|', visible ? visible : "all"), gpu};
}

/// Workers write what they have left when they end, so the program waits for them.
class Workers {
 public:
  static Workers& all() {
    static Workers& instance = *new Workers;
    return instance;
  }
  void add(Channel* channel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (process_ == 0) {
      process_ = getpid();
      std::atexit([] { all().end_all(); });
    }
    channels_.insert(channel);
  }
  void end(Channel* channel) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (channels_.erase(channel) == 0) return;
    }
    if (getpid() == process_) end_one(*channel);
  }

 private:
  void end_all() {
    if (getpid() != process_) return;  // a child that was forked
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Channel* each : channels_) end_one(*each);
    channels_.clear();
  }
  static void end_one(Channel& channel) {
    channel.end();
    while (channel.wait(worker_ends)) {
    }
  }

  std::mutex mutex_;
  std::set<Channel*> channels_;
  pid_t process_ = 0;
};

}  // namespace

RemoteRunner::RemoteRunner(int32_t kind, const std::string& file, const Options& options, Args given, Args config)
    : sharing_(sharing_of(options)),
      is_shared_(!sharing_.device.empty()),
      file_(is_address(file) ? file : absolute_path(file).string()),
      name_(std::filesystem::path(file).stem().string()),
      reading_{options.same_layout, options.cast, /*brings_to_host=*/true},
      ranks_(options.communicator.value_or(0), ranks_wait),
      channel_(std::make_unique<Channel>()) {
  std::vector<fpt_arg> sent;
  for (const fpt_arg& option : given) {
    const std::string_view name = option.name;
    if (name != "per" && name != "communicator" && (name != "device" || !is_shared_)) sent.push_back(option);
  }
  SegmentWriter writer(channel_->memory(), 0);
  writer.add(Request{Wish::load, file_, kind});
  const CallName call{"load", {}};
  const SentArguments options_of_load(sent, "option", call, writer), values(config, "config", call, writer);
  const char* const begin = channel_->memory().at(0);
  const std::uint64_t same_on_all = hash_of({begin, static_cast<std::size_t>(writer.end())});
  writer.add(options.communicator.value_or(0), RankPlace::here(ranks_.rank(), ranks_.size()));
  load_.assign(begin, begin + writer.end());
  if (ranks_.rank() == 0) warn_of_observers(sharing_.per);
  node_ = std::make_unique<Meeting>(ranks_, same_on_all, sharing_);
  start();
}

RemoteRunner::~RemoteRunner() { Workers::all().end(channel_.get()); }

/// Let the process of the node make the other end of the channel, where the request of the load is.
void RemoteRunner::start() {
  if (!node_->make_worker(*channel_)) lose_loader();
  const CallName call = name_of("load");
  const Outcome outcome = answer(static_cast<int64_t>(load_.size()), call).outcome;
  backend_ = outcome.text;
  end_.clear();
  if (!is_shared_) return Workers::all().add(channel_.get());
  number_ = outcome.number;
  Descriptor memory = node_->memory();
  if (!memory) lose(call);
  board_ = std::make_unique<Board>(std::move(memory));
}

/// Let the other process go on.
void RemoteRunner::tell() {
  if (!board_) return channel_->tell();
  ask_owner(*board_, number_, *channel_);
}

/// Until the other process lets this one go on; false if it is gone.
bool RemoteRunner::wait_for_it() { return board_ ? wait_for_owner(*board_, number_, *channel_) : channel_->wait(); }

RemoteRunner::Reply RemoteRunner::ask(Request request, const CallName& call, Args inputs, Args others,
                                      const char* others_name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!end_.empty()) fail(FPT_ERR_PYTHON, end_);
  std::string form = is_shared_ ? form_of(request, inputs, others) : std::string();
  std::optional<Places> places;
  if (const auto known = places_.find(form); known != places_.end()) {
    request.places = known->second.number;
    places.emplace(board_->memory(), known->second.begins);
  }
  SegmentWriter writer(channel_->memory(), 0);
  writer.add(request);
  const SentArguments given(inputs, "input", call, writer, places ? &*places : nullptr),
      wanted(others, others_name, call, writer, places ? &*places : nullptr);
  tell();
  Reply reply = answer(writer.end(), call);
  given.fetch();
  wanted.fetch();
  if (reply.outcome.begins.empty() || form.empty()) return reply;
  if (places_.size() == most_forms) places_.clear();
  places_[std::move(form)] = {reply.outcome.number, std::move(reply.outcome.begins)};
  return reply;
}

/// Of a request that ends there, after its warnings have been passed on; throws what has failed.
RemoteRunner::Reply RemoteRunner::answer(int64_t end, const CallName& call) {
  for (;; tell()) {
    if (!wait_for_it()) lose(call);
    SegmentReader reader(channel_->memory(), end);
    if (reader.get<Answering>() == Answering::meets) {
      meet_ranks(reader);
      continue;
    }
    Reply reply{reader.get<Outcome>(), nullptr};
    for (const std::string& each : reply.outcome.warnings) warn(each);
    if (reply.outcome.status != FPT_OK) fail(reply.outcome.status, reply.outcome.text);
    if (reply.outcome.has_results) reply.results = std::make_shared<NodeAnswer>(reader);
    return reply;
  }
}

/// The other process waits for numbers of all ranks, which this thread fetches by the MPI of the program.
void RemoteRunner::meet_ranks(SegmentReader& reader) {
  const auto reduction = reader.get<Reduction>();
  const auto dtype = reader.get<int32_t>();
  const int64_t count = reader.integer();
  const std::string purpose(reader.text());
  CallOfNetwork call;
  call.call = reader.integer();
  call.network = reader.integer();
  char* values = reader.block(count * static_cast<int64_t>(dtype_size(dtype)));
  Outcome outcome;  // it waits, whatever happens here
  outcome.attempt([&] { ranks_.combine(values, count, dtype, reduction, purpose.c_str(), call); });
  // behind the numbers, which stay where they are
  SegmentWriter(channel_->memory(), reader.end()).add(outcome);
}

void RemoteRunner::lose_loader() const {
  fail(FPT_ERR_INTERPRETER, "the process that loads ", file_, " for ", is_shared_ ? "the ranks of " : "this node",
       sharing_.device, " has ended: load again, and look at what it has written to standard error");
}

void RemoteRunner::lose(const CallName& call) {
  if (backend_.empty()) lose_loader();  // it has never worked
  const std::string how = is_shared_ ? std::string() : node_->end_of_worker();
  end_ = is_shared_
             ? concat("the process that computes on ", sharing_.device, " for the ranks of this node has ended, in ",
                      call, " of a rank or before. Its state is lost: load again")
             : concat("the process that works for rank ", ranks_.rank(), " has ended ", how.empty() ? "" : how + ", ",
                      "in ", call, ". Its training since the last checkpoint is lost: reload starts another one, ",
                      "then restore a checkpoint");
  fail(FPT_ERR_PYTHON, end_);
}

void RemoteRunner::refuse(std::string_view what) const {
  if (is_shared_)
    fail(FPT_ERR_ARGUMENT, name_,
         " is loaded with per=\"gpu\", where one process predicts for all ranks of a GPU, and ", what,
         ". Load without per=, and share the GPU by MPS, see gpu.md");
  fail(FPT_ERR_ARGUMENT, name_, " runs in another process (per=\"node\"), and ", what);
}

bool RemoteRunner::has(const std::string& function) {
  return ask({Wish::has, function}, name_of("has")).outcome.number != 0;
}

void RemoteRunner::reload() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!end_.empty() && !is_shared_) {
      auto channel = std::make_unique<Channel>();
      channel->memory().reserve(static_cast<int64_t>(load_.size()));
      std::memcpy(channel->memory().at(0), load_.data(), load_.size());
      Workers::all().end(channel_.get());
      channel_ = std::move(channel);
      start();
    }
  }
  ask({Wish::reload, {}}, name_of("reload"));
}

/// The communicator, by which a saved model has a rank, is here. A script asks for it there.
std::string RemoteRunner::place_of(const std::string& file) const {
  return absolute_path(is_shared_ || fpt::is_script(file_) ? file : with_rank(file, ranks_.rank())).string();
}

void RemoteRunner::save(const std::string& file) {
  if (is_shared_) refuse("it learns nothing that could be saved");
  ask({Wish::save, place_of(file)}, name_of("save"));
}

void RemoteRunner::checkpoint(const std::string& folder, int64_t keep, int64_t step) {
  if (is_shared_) refuse("it learns nothing that could be kept");
  ask({Wish::checkpoint, place_of(folder), keep, step}, name_of("checkpoint"));
}

int64_t RemoteRunner::restore(const std::string& file, bool fallback, int64_t step) {
  return ask({Wish::restore, place_of(file), fallback, step}, name_of("restore")).outcome.number;
}

void RemoteRunner::run(const CallRequest& wanted) {
  if (wanted.training && is_shared_) refuse("it does not train");
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
         ", and the process that computes with ", sharing_.per, " has arrays of the host only: load without per=");
  request.second = targets.results || targets.tensor;
  const Reply reply = ask(request, call, wanted.inputs, outputs.get());
  outputs.written();
  if (!reply.results) return;
  TensorPtr tensor = targets.tensor ? single_tensor(*reply.results, call, reading_) : nullptr;
  if (targets.results) store_results(targets.results, Results(reply.results, call, reading_));
  if (tensor) *targets.tensor = std::move(tensor);
}

void RemoteRunner::set_stream(void*, bool) {
  if (is_shared_) refuse("it has no stream of the program");
  fail(FPT_ERR_DEVICE, name_, " computes on the host (per=\"node\")");
}

}  // namespace fpt
