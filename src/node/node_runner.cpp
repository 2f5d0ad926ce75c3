// SPDX-License-Identifier: MIT
#include "node/node_runner.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "node/node_arguments.hpp"
#include "node/rank_place.hpp"

namespace fpt {
namespace {

constexpr double ranks_wait = 1800, worker_ends = 30;  // seconds

/// Workers write what they have left when they end, so the program waits for them.
class Workers {
 public:
  static Workers& all() {
    static Workers& instance = *new Workers;
    return instance;
  }
  void add(Channel* channel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (channels_.empty() && process_ == 0) {
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

NodeRunner::NodeRunner(const std::string& file, const Options& options)
    : RemoteRunner(file, options, "node"),
      ranks_(std::make_shared<MpiSum>(options.communicator.value_or(0), ranks_wait)) {}

std::unique_ptr<Runner> NodeRunner::load(int32_t kind, const std::string& file, const Options& options, Args given,
                                         Args config) {
  if (!options.communicator)
    fail(FPT_ERR_ARGUMENT, "load(..., per=\"node\") needs communicator=, which tells the ranks that share the node");
  if (!options.device.empty() && options.device != "cpu")
    fail(FPT_ERR_DEVICE, "load(..., per=\"node\") computes on the host, and device is \"", options.device,
         "\": per=\"gpu\" has one process for the ranks of a GPU");
  std::unique_ptr<NodeRunner> runner(new NodeRunner(file, options));
  runner->worker_ = std::make_unique<Channel>();
  SegmentWriter writer(runner->worker_->memory(), 0);
  std::vector<fpt_arg> sent = without(given, {"per", "communicator"});
  const std::uint64_t request = runner->send_load(kind, sent, config, writer, runner->worker_->memory());
  writer.integer(*options.communicator);
  RankPlace::here(runner->ranks_->rank(), runner->ranks_->size()).write(writer);
  const char* begin = runner->worker_->memory().at(0);
  runner->load_.assign(begin, begin + writer.end());
  if (runner->ranks_->rank() == 0) warn_of_observers("per=\"node\"");
  runner->node_ = std::make_unique<Meeting>(*runner->ranks_, request, Sharing{"load(..., per=\"node\")", {}});
  runner->start_worker();
  return runner;
}

NodeRunner::~NodeRunner() {
  if (worker_) Workers::all().end(worker_.get());
}

/// With the request of the load in the memory of the channel.
void NodeRunner::start_worker() {
  if (!node_->make_worker(*worker_)) lose_node();
  backend_ = answer(static_cast<int64_t>(load_.size()), {"load", name_}).outcome.text;
  end_.clear();
  Workers::all().add(worker_.get());
}

NodeRunner::Reply NodeRunner::ask(Request request, const CallName& call, Args inputs, Args others,
                                  const char* others_name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!end_.empty()) fail(FPT_ERR_PYTHON, end_);
  SegmentWriter writer(worker_->memory(), 0);
  request.write(writer);
  const SentArguments given(inputs, "input", call, writer), wanted(others, others_name, call, writer);
  worker_->tell();
  Reply reply = answer(writer.end(), call);
  given.fetch();
  wanted.fetch();
  return reply;
}

NodeRunner::Reply NodeRunner::answer(int64_t end, const CallName& call) {
  for (;; worker_->tell()) {
    if (!worker_->wait()) lose_worker(call);
    SegmentReader reader(worker_->memory(), end);
    if (static_cast<Answering>(reader.integer()) == Answering::meets) {
      meet_ranks(reader);
      continue;
    }
    return read_reply(reader);
  }
}

void NodeRunner::lose_node() const {
  fail(FPT_ERR_INTERPRETER, "the process that loads ", file_, " for this node has ended, and nothing makes a worker: ",
       "load again, and look at what it has written to standard error");
}

void NodeRunner::lose_worker(const CallName& call) {
  if (backend_.empty()) lose_node();  // there was none yet
  const std::string how = node_->end_of_worker();
  end_ = concat("the process that works for rank ", ranks_->rank(), " has ended ", how.empty() ? "" : how + ", ", "in ",
                call, ". Its training since the last checkpoint is lost: reload starts another one, ",
                "then restore a checkpoint");
  Workers::all().end(worker_.get());
  fail(FPT_ERR_PYTHON, end_);
}

/// The worker waits for numbers of all ranks, which this thread fetches by the MPI of the program.
void NodeRunner::meet_ranks(SegmentReader& reader) {
  const auto reduction = static_cast<Reduction>(reader.integer());
  const auto dtype = static_cast<int32_t>(reader.integer());
  const int64_t count = reader.integer();
  const std::string purpose(reader.text());
  char* values = reader.block(count * static_cast<int64_t>(dtype_size(dtype)));
  Outcome outcome;
  try {
    ranks_->combine(values, count, dtype, reduction, purpose.c_str());
  } catch (const Error& error) {
    outcome.status = error.status();
    outcome.text = error.text();
  } catch (const std::bad_alloc&) {  // the worker waits, whatever happens here
    outcome.status = FPT_ERR_MEMORY;
    outcome.text = concat(purpose, ": out of memory");
  }
  // behind the numbers, which stay where they are
  SegmentWriter writer(worker_->memory(), reader.end());
  outcome.write(writer);
}

void NodeRunner::reload() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!end_.empty()) {
      auto channel = std::make_unique<Channel>();
      channel->memory().reserve(static_cast<int64_t>(load_.size()));
      std::memcpy(channel->memory().at(0), load_.data(), load_.size());
      worker_ = std::move(channel);
      start_worker();
    }
  }
  ask({Wish::reload, {}}, name_of("reload"));
}

void NodeRunner::save(const std::string& file) { ask({Wish::save, absolute_path(file).string()}, name_of("save")); }

void NodeRunner::checkpoint(const std::string& folder, int64_t keep, int64_t step) {
  ask({Wish::checkpoint, absolute_path(folder).string(), keep, step}, name_of("checkpoint"));
}

void NodeRunner::refuse(std::string_view what) const {
  fail(FPT_ERR_ARGUMENT, name_, " runs in another process (per=\"node\"), and ", what);
}

void NodeRunner::set_stream(void*, bool) { fail(FPT_ERR_DEVICE, name_, " computes on the host (per=\"node\")"); }

}  // namespace fpt
