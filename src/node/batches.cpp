// SPDX-License-Identifier: MIT
#include "node/batches.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "calls/module_call.hpp"
#include "node/node_arguments.hpp"
#include "node/node_worker.hpp"
#include "node/places.hpp"

namespace fpt {
namespace {

constexpr double tolerance = 1e-3;  // of a result, relative to the largest
constexpr std::size_t most_plans = 64, most_kinds = 4096;
constexpr int64_t page = int64_t{1} << 16, alignment = 256;

constexpr int64_t rounded(int64_t bytes, int64_t to) noexcept { return (bytes + to - 1) / to * to; }

/// Fields of a model that begins at rest may hide it that rows depend on others, so this is never over: batches 1, 2,
/// 4, 8, ... of a kind.
constexpr bool is_checked_after(std::size_t batches) noexcept { return (batches & (batches + 1)) == 0; }

bool is_array(const fpt_arg& arg) noexcept { return !is_value(arg); }

int64_t last_extent(const fpt_arg& arg) noexcept { return arg.u.array.extents[arg.rank - 1]; }

int64_t bytes_of(const fpt_arg& arg) noexcept { return static_cast<int64_t>(byte_count(array_of(arg))); }

/// The same with other rows.
fpt_arg with_rows(const fpt_arg& arg, void* data, int64_t rows) noexcept {
  fpt_arg made = arg;
  made.data = data;
  made.u.array.extents[arg.rank - 1] = rows;
  pack(made);
  return made;
}

template <class Number>
double largest_difference(const char* one, const char* other, int64_t bytes) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < bytes; i += static_cast<int64_t>(sizeof(Number))) {
    Number a, b;
    std::memcpy(&a, one + i, sizeof a);
    std::memcpy(&b, other + i, sizeof b);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
    difference = std::isfinite(apart) ? std::max(difference, apart) : HUGE_VAL;
  }
  for (int64_t i = 0; i < bytes && difference > 0; i += static_cast<int64_t>(sizeof(Number))) {
    Number a;
    std::memcpy(&a, one + i, sizeof a);
    if (std::isfinite(a)) largest = std::max(largest, std::abs(static_cast<double>(a)));
  }
  return difference == 0 ? 0 : largest == 0 ? HUGE_VAL : difference / largest;
}

double relative_difference(int32_t dtype, const char* one, const char* other, int64_t bytes) {
  if (dtype == FPT_FLOAT32 || dtype == FPT_COMPLEX64) return largest_difference<float>(one, other, bytes);
  if (dtype == FPT_FLOAT64 || dtype == FPT_COMPLEX128) return largest_difference<double>(one, other, bytes);
  return std::memcmp(one, other, static_cast<std::size_t>(bytes)) == 0 ? 0 : HUGE_VAL;
}

}  // namespace

bool RankCall::can_be_joined() const {
  if (request.wish != Wish::call || request.is_list || request.second != 0) return false;
  bool has_rows = false;
  for (const std::vector<fpt_arg>* args : {&inputs, &others})
    for (const fpt_arg& arg : *args) {
      const bool is_output = args == &others;
      if (!is_array(arg)) {
        if (is_output || arg.access == FPT_OUT) return false;
        continue;
      }
      if (arg.rank == 0 || last_extent(arg) != rows() || last_extent(arg) == 0) return false;
      if (!is_output && arg.access == FPT_OUT) return false;
      has_rows = has_rows || !is_output;
    }
  return has_rows && !others.empty();
}

int64_t RankCall::rows() const { return others.empty() || others[0].rank == 0 ? 0 : last_extent(others[0]); }

std::string RankCall::values() const {
  std::string text;
  for (const fpt_arg& arg : inputs)
    if (arg.dtype == FPT_TEXT)
      text += concat(text_of(arg).size(), ' ', text_of(arg));
    else if (!is_array(arg))
      text.append(reinterpret_cast<const char*>(arg.u.value), dtype_size(arg.dtype));
  return text;
}

RankCall Batches::read(std::size_t rank, Channel& channel) {
  SegmentReader reader(channel.memory(), 0);
  RankCall found{rank, &channel, reader.get<Request>(), {}, {}, 0};
  if (found.request.places == 0) {
    found.inputs = received_arguments(reader);
    found.others = received_arguments(reader);
  } else {
    const Plan& plan = plan_of(found);
    const auto place = std::find(plan.ranks.begin(), plan.ranks.end(), rank) - plan.ranks.begin();
    Places places(board_.memory(), plan.begins.at(static_cast<std::size_t>(place)));
    found.inputs = received_arguments(reader, &places);
    found.others = received_arguments(reader, &places);
  }
  found.end = reader.end();
  return found;
}

void Batches::run(std::vector<RankCall>& calls, bool is_everyone) {
  std::sort(calls.begin(), calls.end(), [](const RankCall& a, const RankCall& b) { return a.rank < b.rank; });
  struct Group {
    std::string kind, values;
    Calls calls;
  };
  std::vector<Group> groups;
  for (RankCall& each : calls) {
    const bool is_planned = each.request.places != 0;
    if (!is_planned && !each.can_be_joined()) {
      answer_request(*each.channel, module_);
      if (each.request.wish == Wish::reload || each.request.wish == Wish::restore) checked_.clear();
      tell_rank(board_, static_cast<int64_t>(each.rank), *each.channel);
      continue;
    }
    Group mine{is_planned ? plan_of(each).kind : form_of(each.request, each.inputs, each.others, true),
               each.values(),
               {&each}};
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.kind == mine.kind && group.values == mine.values;
    });
    if (known != groups.end())
      known->calls.push_back(&each);
    else
      groups.push_back(std::move(mine));
  }
  for (const Group& group : groups) {
    Outcome outcome;  // no memory for what they share
    outcome.attempt([&] { run_as_one(group.kind, group.calls, is_everyone && group.calls.size() == calls.size()); });
    if (outcome.status != FPT_OK) answer(group.calls, outcome, 0);
  }
}

void Batches::run_as_one(const std::string& kind, const Calls& calls, bool is_everyone) {
  const RankCall& first = *calls.front();
  const bool in_place = is_in_place(calls);
  const std::size_t last = calls.size() - 1;
  if (checked_.size() > most_kinds) checked_.clear();  // each value of a number is a kind: they are looked at again
  std::size_t* const batches = last > 0 ? &checked_[kind] : nullptr;
  // What looks back shows in the rows of the last rank, what looks ahead in those of another one
  std::map<std::size_t, std::vector<std::vector<char>>> before;
  if (batches && is_checked_after(*batches)) before = {{last, {}}, {(last / 2 + *batches) % last, {}}};
  std::vector<std::vector<char>> copies;
  std::vector<fpt_arg> inputs = joined(calls, &RankCall::inputs, in_place, copies),
                       others = joined(calls, &RankCall::others, in_place, copies);
  for (auto& [which, memory] : before)
    for (const fpt_arg& arg : calls[which]->others) {
      const char* begin = static_cast<const char*>(arg.data);
      memory.emplace_back(begin, begin + bytes_of(arg));
    }
  Outcome outcome;
  outcome.attempt([&] { require_success(call(first, inputs, others)); });
  if (outcome.status != FPT_OK && calls.size() > 1)
    outcome.text += concat("\nper=\"gpu\" made this call for ", calls.size(), " ranks at once, with their arrays side ",
                           "by side along the last dimension of Fortran");
  for (auto& [which, memory] : before) {
    if (outcome.status != FPT_OK) break;
    outcome.text = difference(calls, which, others, memory);
    if (!outcome.text.empty()) outcome.status = FPT_ERR_ARGUMENT;
  }
  if (outcome.status == FPT_OK && batches) ++*batches;
  int64_t plan = 0;
  if (outcome.status == FPT_OK && !in_place) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      const char* from = static_cast<const char*>(others[i].data);
      for (const RankCall* each : calls) {
        const auto bytes = static_cast<std::size_t>(bytes_of(each->others[i]));
        std::memcpy(each->others[i].data, from, bytes);
        from += bytes;
      }
    }
    if (is_everyone) plan = planned(kind, calls);
  }
  outcome.warnings = kept_warnings();
  answer(calls, std::move(outcome), plan);
}

fpt_status Batches::call(const RankCall& like, std::vector<fpt_arg>& inputs, std::vector<fpt_arg>& others) const {
  make_copies(inputs);
  const GradientsOfRank gradients(like.request);
  return call_module(module_, {like.request.text, inputs, {others}, static_cast<int32_t>(like.request.first)});
}

bool Batches::is_in_place(const Calls& calls) const {
  const int64_t number = calls.front()->request.places;
  if (number == 0) return false;
  const std::vector<std::size_t>& ranks = plan_of(*calls.front()).ranks;
  return calls.size() == ranks.size() &&
         std::equal(calls.begin(), calls.end(), ranks.begin(),
                    [&](auto* call, auto rank) { return call->request.places == number && call->rank == rank; });
}

std::vector<fpt_arg> Batches::joined(const Calls& calls, std::vector<fpt_arg> RankCall::* which, bool in_place,
                                     std::vector<std::vector<char>>& copies) {
  int64_t rows = 0;
  for (const RankCall* each : calls) rows += each->rows();
  std::vector<fpt_arg> made = calls.front()->*which;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!is_array(made[i])) continue;
    if (calls.size() > 1 && !in_place) {
      std::vector<char>& copy = copies.emplace_back();
      for (const RankCall* each : calls) {
        const fpt_arg& part = (each->*which)[i];
        const char* begin = static_cast<const char*>(part.data);
        copy.insert(copy.end(), begin, begin + bytes_of(part));
      }
      made[i].data = copy.data();
    }
    made[i] = with_rows(made[i], made[i].data, rows);
  }
  return made;
}

std::string Batches::difference(const Calls& calls, std::size_t which, const std::vector<fpt_arg>& others,
                                std::vector<std::vector<char>>& before) const {
  const RankCall& one = *calls[which];
  std::vector<fpt_arg> inputs = one.inputs, alone = one.others;
  for (std::size_t i = 0; i < alone.size(); ++i) alone[i].data = before[i].data();
  const std::string what = concat(one.request.text, " of ", name_);
  if (call(one, inputs, alone) != FPT_OK)
    return concat(what, " works with the rows of ", calls.size(), " ranks, and not with those of one: ", last_error());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const char* together = static_cast<const char*>(others[i].data);
    for (std::size_t rank = 0; rank < which; ++rank) together += bytes_of(calls[rank]->others[i]);
    const double apart = relative_difference(alone[i].dtype, before[i].data(), together, bytes_of(alone[i]));
    if (apart <= tolerance) continue;
    return concat(argument_label("output", static_cast<int32_t>(i), alone[i]), " of ", what, " depends on the rows of ",
                  "other ranks: those of one rank alone give results that differ by ", apart,
                  " of the largest value, and ", tolerance,
                  " is allowed. per=\"gpu\" computes for all ranks at once, so ",
                  "each row must be computed by itself, without random numbers and without means over the batch. Load ",
                  "without per=, and share the GPU by MPS");
  }
  return {};
}

int64_t Batches::planned(const std::string& kind, const Calls& calls) {
  std::string batch = kind;
  for (const RankCall* each : calls) batch += concat(each->rank, ' ', each->rows(), ' ');
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& plan) { return plan.batch == batch; });
  if (known != plans_.end()) return known - plans_.begin() + 1;
  if (seen_.size() > most_kinds) seen_.clear();
  if (plans_.size() == most_plans || ++seen_[batch] < 2) return 0;
  Plan plan{std::move(batch), kind, {}, std::vector<std::vector<int64_t>>(calls.size())};
  for (const RankCall* each : calls) plan.ranks.push_back(each->rank);
  Segment& memory = board_.memory();
  const int64_t begin = rounded(memory.bytes(), page);
  int64_t end = begin;
  for (const auto which : {&RankCall::inputs, &RankCall::others})
    for (std::size_t i = 0; i < (calls.front()->*which).size(); ++i) {
      if (!is_array((calls.front()->*which)[i])) continue;
      end = rounded(end, alignment);
      for (std::size_t rank = 0; rank < calls.size(); ++rank) {
        plan.begins[rank].push_back(end);
        end += bytes_of((calls[rank]->*which)[i]);
      }
    }
  memory.reserve(end);
  if (locks_pages_) {
    fpt_arg pages;
    const int64_t bytes = end - begin;
    describe_array(pages, memory.at(begin), FPT_INT8, 1, &bytes, nullptr, FPT_OUT);
    if (fpt_pin(&pages) != FPT_OK) warn(concat("copies to and from the GPU are slow: ", last_error()));
  }
  plans_.push_back(std::move(plan));
  return static_cast<int64_t>(plans_.size());
}

void Batches::answer(const Calls& calls, Outcome outcome, int64_t plan) {
  outcome.number = plan;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (plan != 0) outcome.begins = plans_[static_cast<std::size_t>(plan - 1)].begins[i];
    fpt::answer(*calls[i]->channel, calls[i]->end, outcome);
    outcome.warnings.clear();
  }
  for (const RankCall* each : calls) tell_rank(board_, static_cast<int64_t>(each->rank), *each->channel);
}

}  // namespace fpt
