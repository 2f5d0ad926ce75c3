// SPDX-License-Identifier: MIT
#include "node/owner_process.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
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
#include "node/node_arguments.hpp"
#include "node/node_worker.hpp"
#include "node/rank_place.hpp"

namespace fpt {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int late_ranks_wait = 60000;  // milliseconds, while there are none
constexpr std::size_t memory = 0, reads = 1, writes = 2, descriptors_of_rank = 6;
// How long the first call of a batch waits for those of other ranks, at least. To compute twice costs more than to wait
// as long as it takes once.
constexpr microseconds shortest_window{100};
// Without a call the process looks for one so long, then it sleeps; and so often it looks after ranks that come or go.
constexpr microseconds looking{1000}, between_looks{2000};

struct Client {
  Descriptor control;
  std::unique_ptr<Channel> channel;
  int64_t answered = 0;  // calls
};

class OwnerProcess {
 public:
  OwnerProcess(int listening, int ranks)
      : listening_(listening), ranks_(static_cast<std::size_t>(ranks)), board_(ranks) {}

  void serve() {
    for (;;) {
      take_calls();
      if (!calls_.empty() && (is_everyone() || Clock::now() - first_call_ > window_)) {
        compute();
      } else if (calls_.empty() && Clock::now() - last_call_ > looking) {
        if (!sleep()) return;
      } else {
        sched_yield();
      }
      if (Clock::now() - last_look_ > between_looks && !look(0)) return;
    }
  }

 private:
  bool is_everyone() const noexcept { return calls_.size() + gone_ == ranks_; }

  void take_calls() {
    for (std::size_t number = 0; number < clients_.size(); ++number) {
      Client& client = clients_[number];
      if (!client.channel || board_.rank(static_cast<int64_t>(number)).asked.load() == client.answered) continue;
      ++client.answered;
      if (calls_.empty()) first_call_ = Clock::now();
      calls_.push_back(batches_->read(number, *client.channel));
    }
  }

  void compute() {
    const Clock::time_point begin = Clock::now();
    // who has gone meanwhile is not waited for again
    if (!is_everyone()) static_cast<void>(look(0));
    batches_->run(calls_, is_everyone());
    calls_.clear();
    last_call_ = Clock::now();
    window_ = std::max(shortest_window, std::chrono::duration_cast<microseconds>(last_call_ - begin));
  }

  /// Until something happens. False when all ranks have come and gone.
  bool sleep() {
    board_.owner().sleeps.store(1);
    const bool goes_on = has_call() || look(clients_.empty() ? late_ranks_wait : -1);
    board_.owner().sleeps.store(0);
    return goes_on;
  }

  bool has_call() const noexcept {
    for (std::size_t number = 0; number < clients_.size(); ++number)
      if (clients_[number].channel &&
          board_.rank(static_cast<int64_t>(number)).asked.load() != clients_[number].answered)
        return true;
    return false;
  }

  /// After ranks that come, go, or tell something. False when all have come and gone, or none comes.
  bool look(int milliseconds) {
    std::vector<pollfd> ready{{listening_.get(), POLLIN, 0}};
    for (const Client& each : clients_) {
      ready.push_back({each.control.get(), POLLIN, 0});
      ready.push_back({each.channel ? each.channel->readable() : -1, POLLIN, 0});
    }
    int count;
    do count = poll(ready.data(), ready.size(), milliseconds);
    while (count < 0 && errno == EINTR);
    last_look_ = Clock::now();
    const bool is_late = count == 0 && milliseconds > 0;
    for (std::size_t i = 0; 2 * i + 2 < ready.size(); ++i) {
      Client& client = clients_[i];
      if (ready[2 * i + 2].revents != 0 && !client.channel->wait()) leave(client);
      if (client.control && ready[2 * i + 1].revents != 0) hear(client, i);
    }
    if (ready[0].revents != 0) accept();
    return !is_late && gone_ < ranks_;
  }

  void accept() {
    Descriptor control = accepted(listening_.get());
    if (!control) return;
    clients_.push_back({std::move(control), nullptr, 0});
    if (send_message(clients_.back().control.get(), come_message)) hear(clients_.back(), clients_.size() - 1);
  }

  void hear(Client& client, std::size_t number) {
    Message message = receive_message(client.control.get());
    if (message.text == make_worker_message && message.descriptors.size() == descriptors_of_rank && !client.channel)
      join(client, number, std::move(message.descriptors));
    else
      leave(client);
  }

  /// A rank that is gone; what it has asked is computed for nobody.
  void leave(Client& client) {
    if (client.control) ++gone_;
    client.control.reset();
    if (client.channel)
      calls_.erase(std::remove_if(calls_.begin(), calls_.end(),
                                  [&](const RankCall& call) { return call.channel == client.channel.get(); }),
                   calls_.end());
    client.channel.reset();
  }

  void join(Client& client, std::size_t number, std::vector<Descriptor> ends) {
    client.channel =
        std::make_unique<Channel>(Channel::Ends{ends[memory].release(), ends[reads].release(), ends[writes].release()});
    SegmentReader reader(client.channel->memory(), 0);
    const Request request = Request::read(reader);
    std::vector<fpt_arg> options = received_arguments(reader), config = received_arguments(reader);
    use_cores_of(RankPlace::read(reader));
    if (!is_loaded_) load(request, options, config);
    is_loaded_ = true;
    Outcome outcome = loaded_;
    outcome.number = static_cast<int64_t>(number);
    loaded_.warnings.clear();
    answer(*client.channel, reader.end(), outcome);
    if (outcome.status == FPT_OK)
      static_cast<void>(send_message(client.control.get(), memory_message, {board_.memory().descriptor()}));
    client.channel->tell();
  }

  void load(const Request& request, std::vector<fpt_arg>& options, std::vector<fpt_arg>& config) {
    const std::string file(request.text), device(text_of(options.back()));  // which gpu_runner.cpp puts there
    const bool is_on_gpu = device != "cpu";
    make_copies(config);
    fpt_status status = FPT_OK;
    // current for good, so that pages can be locked
    if (is_on_gpu) status = fpt_init_device(device.data(), static_cast<int64_t>(device.size()));
    if (status == FPT_OK && is_on_gpu && is_script(file)) python_side().serve_ranks();
    if (status == FPT_OK)
      status = fpt_module_load(&module_, static_cast<int32_t>(request.first), file.data(),
                               static_cast<int64_t>(file.size()), options.data(), static_cast<int32_t>(options.size()),
                               config.data(), static_cast<int32_t>(config.size()));
    loaded_ = loaded_outcome(status, module_);
    loaded_.warnings = kept_warnings();
    batches_ = std::make_unique<Batches>(module_, std::filesystem::path(file).stem().string(), board_, is_on_gpu);
  }

  /// Those of all ranks that it serves.
  void use_cores_of(const RankPlace& rank) {
    cores_.resize(std::max(cores_.size(), rank.cores.size()), '\0');
    for (std::size_t i = 0; i < rank.cores.size(); ++i) cores_[i] = static_cast<char>(cores_[i] | rank.cores[i]);
    if (!cores_.empty()) sched_setaffinity(0, cores_.size(), reinterpret_cast<const cpu_set_t*>(cores_.data()));
  }

  Descriptor listening_;
  const std::size_t ranks_;
  Board board_;
  std::size_t gone_ = 0;
  std::vector<Client> clients_;  // a rank keeps its number when others have gone
  std::string cores_;
  bool is_loaded_ = false;
  Outcome loaded_;
  fpt_module module_ = 0;
  std::unique_ptr<Batches> batches_;
  std::vector<RankCall> calls_;
  Clock::time_point first_call_, last_call_ = Clock::now(), last_look_ = last_call_;
  microseconds window_ = shortest_window;
};

}  // namespace

void serve_gpu(int listening, int ranks) { OwnerProcess(listening, ranks).serve(); }

}  // namespace fpt
