// SPDX-License-Identifier: MIT
/// per="gpu": the process that has loaded computes for all ranks of a GPU at once. Knows nothing of Python.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays/arg.hpp"
#include "base/error.hpp"
#include "calls/python_side.hpp"
#include "node/batches.hpp"
#include "node/board.hpp"
#include "node/local_socket.hpp"
#include "node/meeting.hpp"
#include "node/node_worker.hpp"
#include "node/server.hpp"

namespace fpt {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// How long the first call of a batch waits for those of other ranks, at least. To compute twice costs more than to wait
// as long as it takes once.
constexpr microseconds shortest_window{100};
// Without a call the process looks for one so long, then it sleeps; and so often it looks after ranks that come or go.
constexpr microseconds looking{1000}, between_looks{2000};

class GpuServer : public Server {
 public:
  GpuServer(int listening, std::size_t ranks, std::string device)
      : Server(listening, ranks), device_(std::move(device)), board_(static_cast<int64_t>(ranks)), taken_(ranks) {}

 private:
  bool turn() override {
    take_calls();
    if (!calls_.empty() && (is_everyone() || Clock::now() - first_call_ > window_))
      compute();
    else if (calls_.empty() && Clock::now() - last_call_ > looking)
      return sleep();
    else
      sched_yield();
    return Clock::now() - last_look_ <= between_looks || look_now(false);
  }

  bool look_now(bool waits) {
    const bool goes_on = look(waits);
    last_look_ = Clock::now();
    return goes_on;
  }

  bool is_on_gpu() const { return device_ != "cpu"; }
  bool is_everyone() const noexcept { return calls_.size() + gone_ == ranks_; }

  void take_calls() {
    for (std::size_t number = 0; number < clients_.size(); ++number) {
      Channel* const channel = clients_[number].channel.get();
      if (!channel || board_.rank(static_cast<int64_t>(number)).asked.load() == taken_[number]) continue;
      ++taken_[number];
      if (calls_.empty()) first_call_ = Clock::now();
      calls_.push_back(batches_->read(number, *channel));
    }
  }

  void compute() {
    const Clock::time_point begin = Clock::now();
    // who has gone meanwhile is not waited for again
    if (!is_everyone()) static_cast<void>(look_now(false));
    batches_->run(calls_, is_everyone());
    calls_.clear();
    last_call_ = Clock::now();
    window_ = std::max(shortest_window, std::chrono::duration_cast<microseconds>(last_call_ - begin));
  }

  bool sleep() {
    board_.owner().sleeps.store(1);
    take_calls();  // of who has seen it awake
    const bool goes_on = !calls_.empty() || look_now(true);
    board_.owner().sleeps.store(0);
    return goes_on;
  }

  void prepare(Joining& first) override {
    const auto length = static_cast<int64_t>(device_.size());
    fpt_arg& option = first.options.emplace_back();
    describe_text(option, device_.data(), length, FPT_IN);
    name_arg(option, "device", 6);
    if (!is_on_gpu()) return;
    // current for good, so that pages can be locked
    require_success(fpt_init_device(device_.data(), length));
    if (is_script(first.file)) python_side().serve_ranks();
  }

  void finish(const Joining& first) override {
    const std::string name = std::filesystem::path(first.file).stem().string();
    batches_ = std::make_unique<Batches>(module_, name, board_, is_on_gpu());
  }

  void join(std::size_t number, Joining joining) override {
    use_cores_of(joining.place);
    Outcome outcome = loaded(joining);
    outcome.number = static_cast<int64_t>(number);
    Client& client = clients_[number];
    if (outcome.status == FPT_OK)
      static_cast<void>(send_message(client.control.get(), memory_message, {board_.memory().descriptor()}));
    joining.answer(outcome);
    client.channel = std::make_unique<Channel>(std::move(joining.channel));
  }

  /// What it has asked is computed for nobody.
  void leave(std::size_t number) override {
    calls_.erase(
        std::remove_if(calls_.begin(), calls_.end(), [number](const RankCall& call) { return call.rank == number; }),
        calls_.end());
    Server::leave(number);
  }

  /// Those of all ranks that it serves.
  void use_cores_of(const RankPlace& rank) {
    cores_.resize(std::max(cores_.size(), rank.cores.size()), '\0');
    for (std::size_t i = 0; i < rank.cores.size(); ++i) cores_[i] = static_cast<char>(cores_[i] | rank.cores[i]);
    if (!cores_.empty()) sched_setaffinity(0, cores_.size(), reinterpret_cast<const cpu_set_t*>(cores_.data()));
  }

  const std::string device_;
  Board board_;
  std::vector<int64_t> taken_;  // calls of each rank
  std::string cores_;
  std::unique_ptr<Batches> batches_;
  std::vector<RankCall> calls_;
  Clock::time_point first_call_, last_call_ = Clock::now(), last_look_ = last_call_;
  microseconds window_ = shortest_window;
};

}  // namespace

std::unique_ptr<Server> gpu_server(int listening, std::size_t ranks, const std::string& device) {
  return std::make_unique<GpuServer>(listening, ranks, device);
}

}  // namespace fpt
