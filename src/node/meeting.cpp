// SPDX-License-Identifier: MIT
#include "node/meeting.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/paths.hpp"
#include "node/local_socket.hpp"
#include "node/rank_place.hpp"

namespace fpt {
namespace {

constexpr int above_standard_files = 10;

/// What each rank tells: where it runs, at which socket it listens, what it loads.
enum : std::size_t { place, socket_number, what, numbers_of_a_rank };

std::string purpose_of(const Sharing& sharing) { return concat("load(..., ", sharing.per, ')'); }

/// Number of the system that runs here and of its network, in which names of sockets are known, and of the place there.
std::uint64_t number_of_node(const Sharing& sharing) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char network[256] = "";
  if (boot.empty() || readlink("/proc/self/ns/net", network, sizeof network - 1) < 0)
    fail(FPT_ERR_INTERPRETER, purpose_of(sharing), " needs /proc, which tells the ranks that run on one node");
  return exact_in_double(hash_of(concat(boot, '|', network, '|', sharing.place)));
}

std::uint64_t random_number() {
  std::random_device source;
  return exact_in_double((static_cast<std::uint64_t>(source()) << 32) ^ source());
}

std::string socket_name(double number) { return concat("ftn_pytorch-", static_cast<std::uint64_t>(number)); }

std::string program() { return (own_folder() / FPT_NODE_PROGRAM_RELATIVE).lexically_normal().string(); }

pid_t start(int listening, std::size_t ranks, const Sharing& sharing) {
  const std::string file = program();
  const std::vector<std::string> variables = sharing.device.empty() ? environment_of_loader() : environment_of_owner();
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (const std::string& each : variables) environment.push_back(const_cast<char*>(each.c_str()));
  environment.push_back(nullptr);
  std::string count = std::to_string(ranks), name = "ftn_pytorch_node", device = sharing.device;
  char* const arguments[] = {name.data(), count.data(), device.data(), nullptr};

  const Descriptor passed(fcntl(listening, F_DUPFD_CLOEXEC, above_standard_files));
  int failure = passed ? 0 : errno;
  pid_t process = 0;
  if (passed) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, passed.get(), STDERR_FILENO + 1);
    failure = posix_spawn(&process, file.c_str(), &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
  }
  if (failure != 0)
    fail(FPT_ERR_INTERPRETER, purpose_of(sharing), ": ", file, " could not be started: ", std::strerror(failure));
  return process;
}

/// Standard files of this process, an empty file in place of one that is closed.
std::vector<int> standard_files(Descriptor& nothing) {
  std::vector<int> files;
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    const bool is_open = fcntl(number, F_GETFD) >= 0;
    if (!is_open && !nothing) nothing = Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC));
    files.push_back(is_open ? number : nothing.get());
  }
  return files;
}

}  // namespace

Meeting::Meeting(MpiSum& ranks, std::uint64_t request, const Sharing& sharing) {
  const std::string purpose = purpose_of(sharing);
  const auto mine = static_cast<double>(number_of_node(sharing)), token = static_cast<double>(random_number()),
             wanted = static_cast<double>(exact_in_double(request));
  Descriptor listening = listen_at(socket_name(token));  // before anybody may connect
  const std::vector<double> all = ranks.gather({mine, token, wanted}, purpose.c_str());

  std::vector<std::size_t> here;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks.size()); ++rank)
    if (all[rank * numbers_of_a_rank + place] == mine) here.push_back(rank);
  const std::size_t first = here.front();
  for (const std::size_t rank : here)
    if (all[rank * numbers_of_a_rank + what] != all[first * numbers_of_a_rank + what])
      fail(FPT_ERR_ARGUMENT, purpose, ": ranks ", first, " and ", rank,
           " run on one node and load different files, or ",
           "with different options or config. Pass what differs between ranks to a function of the script, after load");
  if (first == static_cast<std::size_t>(ranks.rank())) started_ = start(listening.get(), here.size(), sharing);
  if (started_ == 0) listening.reset();
  control_ = connected_to(socket_name(all[first * numbers_of_a_rank + socket_number]));
  if (!control_)
    fail(FPT_ERR_INTERPRETER, purpose, ": the process that rank ", first,
         " has started for this node cannot be reached: ", std::strerror(errno));
}

Meeting::~Meeting() {
  control_.reset();
  int status;
  if (started_ > 0) waitpid(started_, &status, WNOHANG);  // it may serve others still
}

bool Meeting::make_worker(Channel& channel) {
  if (!is_invited_) is_invited_ = receive_message(control_.get()).text == come_message;
  if (!is_invited_) return false;
  Descriptor nothing;
  std::vector<int> descriptors = channel.other_end();
  const std::vector<int> standard = standard_files(nothing);
  descriptors.insert(descriptors.end(), standard.begin(), standard.end());
  const bool is_there = send_message(control_.get(), make_worker_message, descriptors);
  channel.forget_other_end();
  return is_there;
}

Descriptor Meeting::memory() {
  Message message = receive_message(control_.get());
  return message.descriptors.empty() ? Descriptor() : std::move(message.descriptors.front());
}

std::string Meeting::end_of_worker() {
  if (!send_message(control_.get(), tell_end_message)) return {};
  const std::string text = receive_message(control_.get()).text;
  return text == unknown_end_message ? std::string() : text;
}

}  // namespace fpt
