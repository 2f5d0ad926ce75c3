// SPDX-License-Identifier: MIT
#include "node/node_worker.hpp"

#include <strings.h>

#include <cstring>
#include <utility>

#include "calls/module_call.hpp"
#include "node/node_answer.hpp"
#include "node/node_arguments.hpp"

namespace fpt {
namespace {

std::vector<std::string>& warnings() {
  static std::vector<std::string>& kept = *new std::vector<std::string>;
  return kept;
}

/// The request that is being answered.
struct AtWork {
  Channel* channel = nullptr;
  int64_t end = 0;
};
AtWork at_work;

/// One request, and what its call needs.
class Job {
 public:
  Job(Channel& channel, fpt_module module)
      : reader_(channel.memory(), 0),
        module_(module),
        request_(reader_.get<Request>()),
        text_(request_.text),
        inputs_(received_arguments(reader_)),
        others_(received_arguments(reader_)) {
    make_copies(inputs_);
    make_copies(others_);
  }
  ~Job() {
    discard_copies(inputs_);
    discard_copies(others_);
    fpt_results_free(results_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int64_t end() const noexcept { return reader_.end(); }

  Outcome run() {
    Outcome outcome;
    outcome.attempt([&] {
      require_success(call(outcome));
      outcome.has_results = request_.wish == Wish::call && request_.second != 0;
    });
    return outcome;
  }

  void send(SegmentWriter& writer) const { send_results(results_table().at(results_).answer(), writer); }

 private:
  fpt_status call(Outcome& outcome) {
    const char* text = text_.data();
    const auto length = static_cast<int64_t>(text_.size());
    CallRequest wanted{text_, inputs_, {others_}, static_cast<int32_t>(request_.first), request_.is_list};
    Training training;
    int32_t number = 0;
    fpt_status status = FPT_OK;
    const GradientsOfRank gradients(request_);
    switch (request_.wish) {
      case Wish::load:
        fail(FPT_ERR_INTERNAL, "a worker loads nothing");
      case Wish::reload:
        return fpt_module_reload(module_);
      case Wish::save:
        return fpt_module_save(module_, text, length);
      case Wish::checkpoint:
        return fpt_module_checkpoint(module_, text, length, request_.first, request_.second);
      case Wish::restore:
        return fpt_module_restore(module_, text, length, static_cast<int32_t>(request_.first), request_.second,
                                  &outcome.number);
      case Wish::has:
        status = fpt_module_has(module_, text, length, &number);
        outcome.number = number;
        return status;
      case Wish::call:
        if (request_.second != 0) wanted.targets.results = &results_;
        return call_module(module_, wanted);
      case Wish::train:
        wanted.targets = {};
        wanted.goals = others_;
        wanted.training = &training;
        status = call_module(module_, wanted);
        outcome.number = training.completed;
        outcome.loss = training.loss;
    }
    return status;
  }

  SegmentReader reader_;
  const fpt_module module_;
  const Request request_;
  const std::string text_;
  std::vector<fpt_arg> inputs_, others_;
  fpt_results results_ = 0;
};

}  // namespace

void keep_warnings() {
  fpt_on_warning(
      [](const char* text, int64_t length) { warnings().emplace_back(text, static_cast<std::size_t>(length)); });
}

std::vector<std::string> kept_warnings() { return std::exchange(warnings(), {}); }

bool is_script(const std::string& file) noexcept {
  return file.size() > 3 && strcasecmp(file.c_str() + file.size() - 3, ".py") == 0;
}

void require_success(fpt_status status) {
  if (status != FPT_OK) fail(status, last_error());
}

SegmentWriter answer(Channel& channel, int64_t end, const Outcome& outcome) {
  SegmentWriter writer(channel.memory(), end);
  writer.add(Answering::ended, outcome);
  return writer;
}

void answer_request(Channel& channel, fpt_module module) {
  Job job(channel, module);
  at_work = {&channel, job.end()};
  Outcome outcome = job.run();
  outcome.warnings = kept_warnings();
  const fpt_status status = outcome.status;
  outcome.attempt([&] {
    SegmentWriter writer = answer(channel, job.end(), outcome);
    if (outcome.has_results) job.send(writer);
  });
  if (outcome.status != status) answer(channel, job.end(), outcome);
  at_work = {};
}

void work(Channel& channel, fpt_module module) {
  while (channel.wait()) {
    answer_request(channel, module);
    channel.tell();
  }
}

void combine_over_ranks(void* values, int64_t count, int32_t dtype, Reduction reduction, const std::string& purpose,
                        CallOfNetwork call) {
  if (!at_work.channel)
    fail(FPT_ERR_ARGUMENT, purpose,
         ": with per=\"node\" ranks can meet in calls of the program only, neither while the ",
         "file is loaded nor in a thread of the script between calls");
  Segment& memory = at_work.channel->memory();
  SegmentWriter writer(memory, at_work.end);
  writer.add(Answering::meets, reduction, dtype, count, purpose, call.call, call.network);
  const int64_t bytes = count * static_cast<int64_t>(dtype_size(dtype));
  char* place = writer.block(bytes);
  std::memcpy(place, values, static_cast<std::size_t>(bytes));
  at_work.channel->tell();
  if (!at_work.channel->wait()) fail(FPT_ERR_PYTHON, purpose, ": the rank has ended");
  SegmentReader reader(memory, writer.end());
  const auto outcome = reader.get<Outcome>();
  if (outcome.status != FPT_OK) fail(outcome.status, outcome.text);
  std::memcpy(values, place, static_cast<std::size_t>(bytes));
}

}  // namespace fpt
