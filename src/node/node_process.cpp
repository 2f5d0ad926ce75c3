// SPDX-License-Identifier: MIT
#include "node/node_process.hpp"

#include <dirent.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "calls/python_side.hpp"
#include "node/local_socket.hpp"
#include "node/meeting.hpp"
#include "node/node_arguments.hpp"
#include "node/node_worker.hpp"
#include "node/rank_place.hpp"

namespace fpt {
namespace {

constexpr int late_ranks_wait = 60000;  // milliseconds, while there are none
constexpr std::size_t memory = 0, reads = 1, writes = 2, standard_files = 3, descriptors_of_worker = 6;

/// A rank.
struct Client {
  Descriptor control;
  pid_t worker = 0;
};

/// What a rank has asked for, until a worker takes it over.
struct Asked {
  explicit Asked(std::vector<Descriptor> all)
      : channel({all[memory].release(), all[reads].release(), all[writes].release()}),
        standard{std::move(all[standard_files]), std::move(all[standard_files + 1]),
                 std::move(all[standard_files + 2])},
        reader(channel.memory(), 0),
        request(Request::read(reader)),
        file(request.text),
        options(received_arguments(reader)),
        config(received_arguments(reader)) {
    communicator = static_cast<int32_t>(reader.integer());
    place = RankPlace::read(reader);
  }

  Channel channel;
  std::array<Descriptor, 3> standard;
  SegmentReader reader;
  Request request;
  std::string file;
  std::vector<fpt_arg> options, config;
  int32_t communicator = 0;
  RankPlace place;
};

std::string text_of_end(int status) {
  if (WIFSIGNALED(status)) return concat("by signal ", WTERMSIG(status), ", ", strsignal(WTERMSIG(status)));
  return concat("with exit status ", WEXITSTATUS(status));
}

/// Names of the threads of this process beside its first.
std::string names_of_threads() {
  std::string names;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = folder ? readdir(folder) : nullptr) {
    const int number = std::atoi(entry->d_name);
    if (number == 0 || number == getpid()) continue;
    std::string name;
    std::getline(std::ifstream(concat("/proc/self/task/", number, "/comm")), name);
    names += concat(names.empty() ? "" : ", ", name);
  }
  if (folder) closedir(folder);
  return names;
}

class NodeProcess {
 public:
  NodeProcess(int listening, int ranks) : listening_(listening), ranks_(static_cast<std::size_t>(ranks)) {}

  void serve() {
    while (wait()) {
      if (is_ready(0)) accept();
      for (std::size_t i = 1; i < ready_.size(); ++i)
        if (is_ready(i)) hear(*clients_[i - 1]);
      clients_.erase(std::remove_if(clients_.begin(), clients_.end(), [](const auto& each) { return !each->control; }),
                     clients_.end());
      reap();
    }
  }

 private:
  bool is_ready(std::size_t index) const { return ready_[index].revents != 0; }

  /// False when all ranks have come and gone.
  bool wait() {
    if (clients_.empty() && came_ >= ranks_) return false;
    ready_ = {{listening_.get(), POLLIN, 0}};
    for (const auto& each : clients_) ready_.push_back({each->control.get(), POLLIN, 0});
    int count;
    do count = poll(ready_.data(), ready_.size(), clients_.empty() ? late_ranks_wait : -1);
    while (count < 0 && errno == EINTR);
    return count > 0;
  }

  void accept() {
    Descriptor control = accepted(listening_.get());
    if (!control) return;
    ++came_;
    clients_.push_back(std::make_unique<Client>(Client{std::move(control)}));
    if (send_message(clients_.back()->control.get(), come_message)) hear(*clients_.back());
  }

  void hear(Client& client) {
    Message message = receive_message(client.control.get());
    if (message.text == make_worker_message && message.descriptors.size() == descriptors_of_worker)
      make_worker(client, std::make_unique<Asked>(std::move(message.descriptors)));
    else if (message.text == tell_end_message)
      static_cast<void>(send_message(client.control.get(), end_of(client.worker)));
    else
      client.control.reset();
  }

  void make_worker(Client& client, std::unique_ptr<Asked> asked) {
    if (!is_loaded_) load(*asked);
    is_loaded_ = true;
    if (loaded_.status != FPT_OK) {
      Outcome outcome = loaded_;
      outcome.warnings = kept_warnings();
      return reply(*asked, outcome);
    }
    fflush(nullptr);
    try {
      client.worker = python_is_started() ? python_side().fork_process() : fork();
    } catch (const Error& error) {
      return reply(*asked, {error.status(), error.text(), {}});
    }
    if (client.worker == 0) become_worker(std::move(asked));
    if (client.worker < 0)
      reply(*asked, {FPT_ERR_MEMORY, concat("no worker could be forked: ", std::strerror(errno)), {}});
    kept_warnings();  // the first worker has them
  }

  static void reply(Asked& asked, const Outcome& outcome) {
    answer(asked.channel, asked.reader.end(), outcome);
    asked.channel.tell();
  }

  void load(Asked& asked) {
    try {
      std::vector<fpt_arg> options = asked.options;
      make_copies(asked.config);
      if (is_script(asked.file)) {
        python_side().join_node(asked.communicator, asked.place.size);
        fpt_arg communicator;
        describe_array(communicator, &asked.communicator, FPT_INT32, 0, nullptr, nullptr, FPT_IN);
        name_arg(communicator, "communicator", 12);
        options.push_back(communicator);
      }
      const fpt_status status =
          fpt_module_load(&module_, static_cast<int32_t>(asked.request.first), asked.file.c_str(),
                          static_cast<int64_t>(asked.file.size()), options.data(), static_cast<int32_t>(options.size()),
                          asked.config.data(), static_cast<int32_t>(asked.config.size()));
      loaded_ = loaded_outcome(status, module_);
      if (status == FPT_OK && python_is_started()) python_side().prepare_fork();
      if (const std::string names = names_of_threads(); status == FPT_OK && !names.empty())
        fail(FPT_ERR_ARGUMENT, asked.file, " cannot be loaded with per=\"node\": it has started threads (", names,
             "), which do not survive the fork that makes a worker for each rank. Start them in a function that is ",
             "called later");
    } catch (const Error& error) {
      loaded_ = {error.status(), error.text(), {}};
    }
  }

  [[noreturn]] void become_worker(std::unique_ptr<Asked> asked) {
    int code = EXIT_SUCCESS;
    try {
      listening_.reset();
      clients_.clear();
      for (int number = 0; number < 3; ++number) dup2(asked->standard[static_cast<std::size_t>(number)].get(), number);
      for (Descriptor& each : asked->standard) each.reset();
      asked->place.enter();
      Outcome outcome;
      try {
        if (python_is_started())
          python_side().become_worker(asked->place.variables, asked->place.rank, asked->place.threads,
                                      asked->place.parent);
        else
          static_cast<void>(fpt_set_threads(asked->place.team()));
        outcome = loaded_;
      } catch (const Error& error) {
        outcome.status = error.status();
        outcome.text = error.text();
      }
      outcome.warnings = kept_warnings();
      reply(*asked, outcome);
      work(asked->channel, module_);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "ftn_pytorch_node: %s\n", error.what());
      code = EXIT_FAILURE;
    }
    std::exit(code);  // Python flushes what it has
  }

  void reap() {
    int status;
    for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0;) ends_[process] = text_of_end(status);
  }

  std::string end_of(pid_t worker) {
    int status;
    if (worker > 0 && ends_.count(worker) == 0 && waitpid(worker, &status, 0) == worker)
      ends_[worker] = text_of_end(status);
    const auto found = ends_.find(worker);
    return found != ends_.end() ? found->second : unknown_end_message;
  }

  Descriptor listening_;
  const std::size_t ranks_;
  std::size_t came_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<pollfd> ready_;
  std::map<pid_t, std::string> ends_;
  bool is_loaded_ = false;
  Outcome loaded_;
  fpt_module module_ = 0;
};

}  // namespace

void serve_node(int listening, int ranks) { NodeProcess(listening, ranks).serve(); }

}  // namespace fpt
