// SPDX-License-Identifier: MIT
#include "node/server.hpp"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "node/local_socket.hpp"
#include "node/meeting.hpp"
#include "node/node_arguments.hpp"
#include "node/node_worker.hpp"

namespace fpt {
namespace {

constexpr int late_ranks_wait = 60000;  // milliseconds, while there are none

}  // namespace

Joining::Joining(std::vector<Descriptor> all)
    : channel(std::move(all[0]), std::move(all[1]), std::move(all[2])),
      standard{std::move(all[3]), std::move(all[4]), std::move(all[5])},
      reader(channel.memory(), 0) {
  const auto request = reader.get<Request>();
  kind = static_cast<int32_t>(request.first);
  file = request.text;
  options = received_arguments(reader);
  config = received_arguments(reader);
  communicator = reader.get<int32_t>();
  place = reader.get<RankPlace>();
}

void Joining::answer(const Outcome& outcome) {
  fpt::answer(channel, reader.end(), outcome);
  channel.tell();
}

bool Server::look(bool waits) {
  const bool is_alone = gone_ == clients_.size();
  std::vector<pollfd> ready{{listening_.get(), POLLIN, 0}};
  for (const Client& each : clients_) {
    ready.push_back({each.control.get(), POLLIN, 0});
    ready.push_back({each.channel ? each.channel->readable() : -1, POLLIN, 0});
  }
  int count;
  do count = poll(ready.data(), ready.size(), !waits ? 0 : is_alone ? late_ranks_wait : -1);
  while (count < 0 && errno == EINTR);
  for (std::size_t i = 0; 2 * i + 2 < ready.size(); ++i) {
    if (ready[2 * i + 2].revents != 0 && !clients_[i].channel->wait()) leave(i);
    if (clients_[i].control && ready[2 * i + 1].revents != 0) hear(i);
  }
  if (ready[0].revents != 0) accept();
  return gone_ < ranks_ && !(waits && count <= 0);
}

void Server::accept() {
  Descriptor control = accepted(listening_.get());
  if (!control) return;
  clients_.push_back({std::move(control), nullptr});
  if (send_message(clients_.back().control.get(), come_message)) hear(clients_.size() - 1);
}

void Server::hear(std::size_t number) {
  const int control = clients_[number].control.get();
  Message message = receive_message(control);
  if (message.text == make_worker_message && message.descriptors.size() == Joining::descriptors)
    join(number, Joining(std::move(message.descriptors)));
  else if (message.text == tell_end_message)
    static_cast<void>(send_message(control, end_of_worker(number)));
  else
    leave(number);
}

void Server::leave(std::size_t number) {
  Client& client = clients_[number];
  if (client.control) ++gone_;
  client.control.reset();
  client.channel.reset();
}

std::string Server::end_of_worker(std::size_t) { return unknown_end_message; }

Outcome Server::loaded(Joining& joining) {
  if (!is_loaded_) load(joining);
  is_loaded_ = true;
  Outcome outcome = loaded_;
  loaded_.warnings.clear();
  return outcome;
}

void Server::load(Joining& first) {
  loaded_.attempt([&] {
    make_copies(first.config);
    prepare(first);
    require_success(fpt_module_load(&module_, first.kind, first.file.data(), static_cast<int64_t>(first.file.size()),
                                    first.options.data(), static_cast<int32_t>(first.options.size()),
                                    first.config.data(), static_cast<int32_t>(first.config.size())));
    const char* backend = nullptr;
    int64_t length = 0;
    require_success(fpt_module_backend(module_, &backend, &length));
    loaded_.text.assign(backend, static_cast<std::size_t>(length));
    finish(first);
  });
  loaded_.warnings = kept_warnings();
}

void run_server(int listening, std::size_t ranks, const std::string& device) {
  close_all_above(listening);
  keep_warnings();
  (device.empty() ? node_server(listening, ranks) : gpu_server(listening, ranks, device))->serve();
}

}  // namespace fpt
