// SPDX-License-Identifier: MIT
#include "base/mpi_sum.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/narrow_floats.hpp"

namespace fpt {
namespace {

using Integer = std::int32_t;

constexpr std::int64_t no_network = 0;
// Counters of calls begin anew after so many, each of which is exact in all types that are averaged, bfloat16 among
// them; the counter of the next network is so far ahead. A counter has two digits, each of which is a one among zeros.
constexpr int turn = 251, offset = 97, base = 16, places = 2 * base;
constexpr int most_ranks = 5;

/// What MPI_Op_create takes.
template <class Number, Reduction reduction>
// NOLINTNEXTLINE(readability-non-const-parameter): the type that MPI wants
void combined(void* in, void* inout, Integer* count, Integer* /*type*/) {
  const auto* from = static_cast<const Number*>(in);
  auto* to = static_cast<Number*>(inout);
  for (Integer i = 0; i < *count; ++i) to[i] = reduction == Reduction::sum ? to[i] + from[i] : std::max(to[i], from[i]);
}

/// What the script has called.
const char* name_of(std::int64_t network) { return network == no_network ? "all_reduce_mean" : "average_gradients"; }

/// Of MPI; 0 until they are needed. Those of the process: MPI has few operations, and modules come and go.
struct Type {
  Integer type = 0, operations[2] = {0, 0};
};

/// A type of MPI with so many digits, and the operation for numbers of it: that of MPI is a constant of each
/// implementation. maker: subroutine of MPI.
template <class Number, class... Digits>
std::pair<Integer, Integer> type_and_operation(const char* purpose, Reduction reduction, const char* maker,
                                               Digits... digits) {
  static std::mutex mutex;
  static Type made;
  const std::lock_guard<std::mutex> lock(mutex);
  Integer& operation = made.operations[static_cast<std::size_t>(reduction)];
  if (!made.type) call_mpi(purpose, maker, {&digits..., &made.type});
  if (!operation) {
    Integer commutes = 1;
    const auto function =
        reduction == Reduction::sum ? combined<Number, Reduction::sum> : combined<Number, Reduction::largest>;
    call_mpi(purpose, "mpi_op_create_", {reinterpret_cast<void*>(function), &commutes, &operation});
  }
  return {made.type, operation};
}

/// Who is elsewhere, by how many calls each rank is ahead of this one.
std::string told(const std::vector<int>& off) {
  const auto count = [&off](int value) { return std::count(off.begin(), off.end(), value); };
  const int most =
      *std::max_element(off.begin(), off.end(), [&](int one, int other) { return count(one) < count(other); });
  const auto model = std::find(off.begin(), off.end(), most) - off.begin();
  std::string text;
  std::size_t others = 0;
  for (std::size_t rank = 0; rank < off.size(); ++rank) {
    const int calls = off[rank] - most;
    if (calls == 0 || ++others > most_ranks) continue;
    text += concat(others > 1 ? ", " : "", "rank ", rank, " is ", std::abs(calls), calls > 0 ? " ahead of" : " behind",
                   " rank ", model);
  }
  return others > most_ranks ? concat(text, " and ", others - most_ranks, " more") : text;
}

/// What goes with a sum. The numbers of networks may be negative.
int counter_of(CallOfNetwork call) {
  return static_cast<int>(((call.call + offset * call.network) % turn + turn) % turn);
}

/// What MPI may write to until a sum is done. Doubles are aligned for numbers of any type.
struct Buffers {
  explicit Buffers(std::size_t bytes)
      : mine(new double[(bytes + sizeof(double) - 1) / sizeof(double)]),
        sums(new double[(bytes + sizeof(double) - 1) / sizeof(double)]) {}
  std::unique_ptr<double[]> mine, sums;
};

}  // namespace

MpiSum::MpiSum(int communicator, double limit_seconds, std::int64_t piece_bytes)
    : MpiRanks(communicator, limit_seconds), piece_bytes_(piece_bytes) {}

void MpiSum::average(void* values, std::int64_t count, int dtype, std::int64_t network) {
  const std::lock_guard<std::mutex> lock(mutex_);
  purpose_ = name_of(network);
  const bool is_complex = dtype == FPT_COMPLEX64 || dtype == FPT_COMPLEX128;
  const bool is_double = dtype == FPT_FLOAT64 || dtype == FPT_COMPLEX128;
  const bool is_narrow = dtype == FPT_FLOAT16 || dtype == FPT_BFLOAT16;
  if (!is_complex && !is_double && !is_narrow && dtype != FPT_FLOAT32)
    fail(FPT_ERR_DTYPE, purpose_, ": real and complex numbers can be averaged, and these are none");
  const std::size_t length = static_cast<std::size_t>(count) * (is_complex ? 2 : 1);
  const CallOfNetwork call{++calls_[network], network};
  if (size() == 1) return;
  call_roll();
  const auto averages = [&](auto* numbers) {
    reduce(numbers, length, Reduction::sum, call);
    for (std::size_t i = 0; i < length; ++i) numbers[i] /= static_cast<std::decay_t<decltype(*numbers)>>(size());
  };
  if (is_double) return averages(static_cast<double*>(values));
  if (!is_narrow) return averages(static_cast<float*>(values));
  std::vector<float> numbers(length);
  auto* narrow = static_cast<std::uint16_t*>(values);
  std::transform(narrow, narrow + length, numbers.begin(), dtype == FPT_FLOAT16 ? float_of_half : float_of_bfloat16);
  averages(numbers.data());
  std::transform(numbers.begin(), numbers.end(), narrow, dtype == FPT_FLOAT16 ? half_of_float : bfloat16_of_float);
}

void MpiSum::combine(void* values, std::int64_t count, int dtype, Reduction reduction, const char* purpose,
                     CallOfNetwork call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  purpose_ = purpose;
  if (size() == 1) return;
  call_roll();
  const auto length = static_cast<std::size_t>(count);
  if (dtype == FPT_FLOAT32) return reduce(static_cast<float*>(values), length, reduction, call);
  if (dtype == FPT_FLOAT64) return reduce(static_cast<double*>(values), length, reduction, call);
  if (dtype == FPT_INT64) return reduce(static_cast<std::int64_t*>(values), length, reduction, call);
  fail(FPT_ERR_DTYPE, purpose, ": sums over ranks are made of real numbers and integers of 64 bits");
}

std::vector<double> MpiSum::gather(const std::vector<double>& mine, const char* purpose) {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size()));
  std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank());
  combine(all.data(), static_cast<std::int64_t>(all.size()), FPT_FLOAT64, Reduction::sum, purpose);
  return all;
}

void MpiSum::skip(std::int64_t network) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++calls_[network];
}

/// In pieces, and with the digits of the call, which tell whether all ranks have the same. A failure changes nothing.
template <class Number>
void MpiSum::reduce(Number* numbers, std::size_t count, Reduction reduction, CallOfNetwork call) {
  require_usable(purpose_);
  std::pair<Integer, Integer> chosen;
  if constexpr (std::is_same_v<Number, double>) {
    chosen = type_and_operation<double>(purpose_, reduction, "mpi_type_create_f90_real_", 15, 307);
  } else if constexpr (std::is_same_v<Number, float>) {
    chosen = type_and_operation<float>(purpose_, reduction, "mpi_type_create_f90_real_", 6, 37);
  } else {
    chosen = type_and_operation<std::int64_t>(purpose_, reduction, "mpi_type_create_f90_integer_", 18);
  }
  const bool is_counted = call.call > 0;
  const std::size_t all = count + (is_counted ? places : 0);
  const auto buffers = std::make_shared<Buffers>(all * sizeof(Number));
  auto* const mine = reinterpret_cast<Number*>(buffers->mine.get());
  auto* const sums = reinterpret_cast<Number*>(buffers->sums.get());
  std::copy_n(numbers, count, mine);
  std::fill(mine + count, mine + all, Number{});
  const int counter = counter_of(call);
  if (is_counted) mine[count + counter % base] = mine[count + base + counter / base] = 1;
  const auto most = static_cast<std::size_t>(piece_bytes_) / sizeof(Number);
  for (std::size_t begin = 0; begin < all; begin += most) {
    auto length = static_cast<Integer>(std::min(most, all - begin));
    exchange("mpi_iallreduce_", {mine + begin, sums + begin, &length, &chosen.first, &chosen.second}, purpose_,
             buffers);
  }
  // Of other ranks in other calls, some digit is a place that this one has left at zero.
  if (is_counted && std::count(sums + count, sums + all, Number{}) != places - 2) tell_apart(counter);
  std::copy_n(sums, count, numbers);
}

/// Each rank tells where it runs, once.
void MpiSum::call_roll() {
  if (!roll_.empty()) return;
  std::vector<double> roll(2 * static_cast<std::size_t>(size()));
  std::tie(roll[2 * static_cast<std::size_t>(rank())], roll[2 * static_cast<std::size_t>(rank()) + 1]) =
      node_and_process();
  reduce(roll.data(), roll.size());
  roll_ = std::move(roll);
}

/// FPT_ERR_PYTHON, with who is elsewhere. The sums are the same everywhere, so all ranks come here.
void MpiSum::tell_apart(int mine) {
  std::vector<double> everywhere(static_cast<std::size_t>(size()));
  everywhere[static_cast<std::size_t>(rank())] = mine;
  reduce(everywhere.data(), everywhere.size());
  std::vector<int> off;
  for (const double each : everywhere) {
    const int apart = (static_cast<int>(each) - mine + turn + turn / 2) % turn - turn / 2;
    off.push_back(apart);
  }
  fail(FPT_ERR_PYTHON, purpose_, ": the ranks are in different calls of it: ", told(off),
       ". As a rule an error was passed over on a rank (stat=) before it came here, or the ranks took other ways "
       "through the program. Nothing was averaged. End all ranks, and go on from a checkpoint");
}

}  // namespace fpt
