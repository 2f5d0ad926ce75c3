// SPDX-License-Identifier: MIT
/// per="node": a worker for each rank, which is forked from the process that has loaded. Knows nothing of Python.
#include <sys/wait.h>
#include <unistd.h>

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

#include "arrays/arg.hpp"
#include "base/error.hpp"
#include "base/rank.hpp"
#include "calls/python_side.hpp"
#include "node/meeting.hpp"
#include "node/node_worker.hpp"
#include "node/server.hpp"

namespace fpt {
namespace {

/// Names of the threads of this process beside its first.
std::string names_of_threads() {
  std::string names;
  for (const int number : numbers_in("/proc/self/task")) {
    if (number == getpid()) continue;
    std::string name;
    std::getline(std::ifstream(concat("/proc/self/task/", number, "/comm")), name);
    names += concat(names.empty() ? "" : ", ", name);
  }
  return names;
}

class NodeServer : public Server {
 public:
  using Server::Server;

 private:
  bool turn() override { return look(true); }

  void prepare(Joining& first) override {
    if (!is_script(first.file)) return;
    python_side().join_node(first.communicator, first.place.size);
    fpt_arg& communicator = first.options.emplace_back();
    describe_array(communicator, &first.communicator, FPT_INT32, 0, nullptr, nullptr, FPT_IN);
    name_arg(communicator, "communicator", 12);
  }

  void finish(const Joining& first) override {
    if (python_is_started()) python_side().prepare_fork();
    if (const std::string names = names_of_threads(); !names.empty())
      fail(FPT_ERR_ARGUMENT, first.file, " cannot be loaded with per=\"node\": it has started threads (", names,
           "), which do not survive the fork that makes a worker for each rank. Start them in a function that is ",
           "called later");
  }

  void join(std::size_t number, Joining joining) override {
    Outcome outcome = loaded(joining);
    if (outcome.status != FPT_OK) return joining.answer(outcome);
    fflush(nullptr);
    pid_t worker = -1;
    outcome.attempt([&] {
      worker = python_is_started() ? python_side().fork_process() : fork();
      if (worker < 0) fail(FPT_ERR_MEMORY, "no worker could be forked: ", std::strerror(errno));
      if (worker > 0) workers_[number] = worker;
    });
    if (outcome.status != FPT_OK) return joining.answer(outcome);
    if (worker == 0) become_worker(joining, std::move(outcome));
  }

  [[noreturn]] void become_worker(Joining& joining, Outcome outcome) {
    int code = EXIT_SUCCESS;
    try {
      listening_.reset();
      clients_.clear();
      for (int number = 0; number < 3; ++number) dup2(joining.standard[static_cast<std::size_t>(number)].get(), number);
      for (Descriptor& each : joining.standard) each.reset();
      joining.place.enter(before_load_);
      join_training({joining.place.rank, joining.place.size});
      outcome.attempt([&] {
        if (python_is_started())
          python_side().become_worker(joining.place.variables, joining.place.rank, joining.place.threads,
                                      joining.place.parent);
        else
          static_cast<void>(fpt_set_threads(joining.place.team()));
      });
      for (std::string& each : kept_warnings()) outcome.warnings.push_back(std::move(each));
      joining.answer(outcome);
      work(joining.channel, module_);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "ftn_pytorch_node: %s\n", error.what());
      code = EXIT_FAILURE;
    }
    std::exit(code);  // Python flushes what it has
  }

  std::string end_of_worker(std::size_t number) override { return end_of(number, 0); }

  void leave(std::size_t number) override {
    static_cast<void>(end_of(number, WNOHANG));
    Server::leave(number);
  }

  /// How the worker of a rank has ended. @param options  of waitpid()
  std::string end_of(std::size_t number, int options) const {
    const auto worker = workers_.find(number);
    int status;
    if (worker == workers_.end() || waitpid(worker->second, &status, options) != worker->second)
      return unknown_end_message;
    if (WIFSIGNALED(status)) return concat("by signal ", WTERMSIG(status), ", ", strsignal(WTERMSIG(status)));
    return concat("with exit status ", WEXITSTATUS(status));
  }

  const std::vector<std::string> before_load_ = RankPlace::here(0, 1).variables;
  std::map<std::size_t, pid_t> workers_;
};

}  // namespace

std::unique_ptr<Server> node_server(int listening, std::size_t ranks) {
  return std::make_unique<NodeServer>(listening, ranks);
}

}  // namespace fpt
