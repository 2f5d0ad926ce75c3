// SPDX-License-Identifier: MIT
/// The process that loads a file once for ranks of its node, load(..., per="node") and load(..., per="gpu"): how ranks
/// come, load and go. What differs is who computes. Knows nothing of Python.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ftn_pytorch.h"
#include "node/channel.hpp"
#include "node/descriptor.hpp"
#include "node/node_messages.hpp"
#include "node/rank_place.hpp"

namespace fpt {

/// What a rank sends that joins.
struct Joining {
  static constexpr std::size_t descriptors = 6;  ///< three of the channel, and the standard files of the rank

  explicit Joining(std::vector<Descriptor> all);
  void answer(const Outcome& outcome);

  Channel channel;
  std::array<Descriptor, 3> standard;
  SegmentReader reader;
  int32_t kind;
  std::string file;
  std::vector<fpt_arg> options, config;
  int32_t communicator;
  RankPlace place;
};

/// One loop, in which ranks come, join and go. A class below says who computes, and where.
class Server {
 public:
  /// @param listening  socket at which it listens, taken over
  /// @param ranks      so many will come
  Server(int listening, std::size_t ranks) : ranks_(ranks), listening_(listening) {}
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Until all ranks have come and gone, or nobody is there and none comes for a minute.
  void serve() {
    while (turn()) {
    }
  }

 protected:
  struct Client {
    Descriptor control;
    std::unique_ptr<Channel> channel;  ///< where this process itself computes for it
  };

  /// Compute what is there, and look after the ranks. What look() returns.
  virtual bool turn() = 0;
  /// Before the file is loaded, and when it is. FPT_ERR_... fails the load for all ranks.
  virtual void prepare(Joining& first) = 0;
  virtual void finish(const Joining& first) = 0;
  /// Answer with what loaded() returns, and let somebody compute for this rank.
  virtual void join(std::size_t number, Joining joining) = 0;
  virtual void leave(std::size_t number);
  /// How the process that computes for a rank alone has ended.
  virtual std::string end_of_worker(std::size_t number);

  /// After ranks that come, ask or go. False when serve() is over. @param waits  until there is something
  bool look(bool waits);
  /// What the load answers, which the first rank starts. Its warnings are told once.
  Outcome loaded(Joining& joining);

  const std::size_t ranks_;
  std::size_t gone_ = 0;
  Descriptor listening_;
  std::vector<Client> clients_;  // a rank keeps its number when others have gone
  fpt_module module_ = 0;

 private:
  void accept();
  void hear(std::size_t number);
  void load(Joining& first);

  bool is_loaded_ = false;
  Outcome loaded_;
};

/// With a worker for each rank, which is forked from this process.
std::unique_ptr<Server> node_server(int listening, std::size_t ranks);
/// That computes on a GPU itself, for all ranks at once.
std::unique_ptr<Server> gpu_server(int listening, std::size_t ranks, const std::string& device);
/// The program ftn_pytorch_node: a process without files of others, whose warnings are kept.
/// @param device  of gpu_server(), empty for node_server()
FPT_API void run_server(int listening, std::size_t ranks, const std::string& device);

}  // namespace fpt
