// SPDX-License-Identifier: MIT
#include "base/mpi_sum.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/narrow_floats.hpp"

namespace fpt {
namespace {

using Integer = std::int32_t;

constexpr const char* needed = "load(..., communicator=) needs a running MPI";
// as in ranks/sums.py
constexpr std::int64_t no_network = 0;
constexpr int turn = 251, offset = 97, base = 16, places = 2 * base, most_ranks = 5;
constexpr Integer untouched = 0x5a5a5a5a;
constexpr std::size_t status_size = 64;  // integers; more than MPI_STATUS_SIZE of any implementation
constexpr auto longest_sleep = std::chrono::microseconds(1000);
// So long a wait asks again and again, as a sleep of any length takes 50 us; others that want the core get it.
constexpr auto eager = std::chrono::microseconds(200);
// Until who waits says so, in seconds: a few ranks, and only then all of many
constexpr double silence = 30, silence_of_many = 300;
constexpr int few = 8;
constexpr auto between_looks = std::chrono::milliseconds(250);
constexpr auto grace = std::chrono::seconds(2);  // what an ended rank has sent may still be under way

/// What MPI_Op_create takes.
template <class Number, Reduction reduction>
// NOLINTNEXTLINE(readability-non-const-parameter): the type that MPI wants
void combined(void* in, void* inout, Integer* count, Integer* /*type*/) {
  const auto* from = static_cast<const Number*>(in);
  auto* to = static_cast<Number*>(inout);
  for (Integer i = 0; i < *count; ++i) to[i] = reduction == Reduction::sum ? to[i] + from[i] : std::max(to[i], from[i]);
}

template <class Number>
fpt_mpi_function function_for(Reduction reduction) noexcept {
  return reduction == Reduction::sum ? combined<Number, Reduction::sum> : combined<Number, Reduction::largest>;
}

/// What the script has called.
const char* name_of(std::int64_t network) { return network == no_network ? "all_reduce_mean" : "average_gradients"; }

/// Address of a subroutine of MPI. purpose: what failures begin with.
void* find(const char* purpose, const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (!found)
    fail(FPT_ERR_ARGUMENT, purpose, ": there is no ", name,
         " in this process, a Fortran binding of MPI. Either the program does not use MPI, or the bindings of its MPI "
         "have other names, or MPI was linked statically or came with a library that was opened with RTLD_LOCAL");
  return found;
}

/// Call it: everything by address, the error code last.
template <class... Arguments>
void call(const char* purpose, const char* name, Arguments*... arguments) {
  using Subroutine = void (*)(Arguments*..., Integer*);
  const auto subroutine = reinterpret_cast<Subroutine>(find(purpose, name));
  Integer code = 0;
  subroutine(arguments..., &code);
  if (code != 0)
    fail(FPT_ERR_PYTHON, purpose, ": ", std::string(name, std::strlen(name) - 1), " has failed with error code ", code,
         " of MPI");
}

void require_mpi(const char* purpose) {
  struct {
    Integer flag, behind;  // which an MPI with integers of 8 bytes writes to, too
  } answer{0, untouched}, code{0, untouched};
  const auto initialized = reinterpret_cast<void (*)(void*, void*)>(find(purpose, "mpi_initialized_"));
  initialized(&answer, &code);
  if (answer.behind != untouched || code.behind != untouched)
    fail(FPT_ERR_ARGUMENT, purpose, ": the MPI of this process has integers of 8 bytes (ILP64), and is called with ",
         "those of 4: link the program with the MPI that has these");
  if (!answer.flag) fail(FPT_ERR_ARGUMENT, needed, ", and MPI_Init has not been called yet");
  call(purpose, "mpi_finalized_", &answer.flag);
  if (answer.flag) fail(FPT_ERR_ARGUMENT, needed, ", and MPI_Finalize has been called: do this before");
}

/// MPI would end the program. Processes that nobody spawned have no parent: that is the null handle.
void require_own_ranks(const char* purpose, Integer handle) {
  Integer parent = 0, is_inter = 0;
  call(purpose, "mpi_comm_get_parent_", &parent);
  if (handle != parent) call(purpose, "mpi_comm_test_inter_", &handle, &is_inter);
  if (handle == parent || is_inter)
    fail(FPT_ERR_ARGUMENT, purpose, " is the handle ", handle,
         ", which is that of MPI_COMM_NULL or of an inter-communicator: pass a communicator that this rank is a part ",
         "of, and do not load on ranks that are outside of it");
}

/// Of MPI; 0 until they are needed. Those of the process: MPI has few operations, and modules come and go.
struct Type {
  Integer type = 0, operations[2] = {0, 0};
};

/// A type of MPI with so many digits, and the operation for numbers of it. maker: subroutine of MPI.
template <class Number, class... Digits>
std::pair<Integer, Integer> type_and_operation(const char* purpose, Reduction reduction, const char* maker,
                                               Digits... digits) {
  static std::mutex mutex;
  static Type made;
  const std::lock_guard<std::mutex> lock(mutex);
  Integer& operation = made.operations[static_cast<std::size_t>(reduction)];
  if (!made.type) call(purpose, maker, &digits..., &made.type);
  if (!operation) {
    Integer commutes = 1, code = 0, created = 0;
    using Create = void (*)(void (*)(void*, void*, Integer*, Integer*), Integer*, Integer*, Integer*);
    const auto create = reinterpret_cast<Create>(find(purpose, "mpi_op_create_"));
    create(function_for<Number>(reduction), &commutes, &created, &code);
    if (code != 0) fail(FPT_ERR_PYTHON, purpose, ": mpi_op_create has failed with error code ", code, " of MPI");
    operation = created;
  }
  return {made.type, operation};
}

/// Ranks of one node see each other's processes if this is the same: 48 bits of a hash.
double node_number() {
  char host[256] = "", space[256] = "";
  gethostname(host, sizeof host - 1);
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return -1;
  return static_cast<double>(exact_in_double(hash_of(concat(host, '|', space))));
}

/// True for a process of this node that is gone, or that nobody has waited for yet.
bool has_ended(double process) {
  std::ifstream file("/proc/" + std::to_string(static_cast<long>(process)) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const std::size_t name = line.rfind(')');
  return name != std::string::npos && name + 2 < line.size() && (line[name + 2] == 'Z' || line[name + 2] == 'X');
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

}  // namespace

/// One sum under way, and the memory that MPI may write to until it is done.
struct MpiSum::Pending {
  std::vector<double> mine, sums;  ///< of any type: doubles are aligned for all of them
  std::vector<Integer> status = std::vector<Integer>(status_size);
  Integer request = 0;
};

MpiSum::MpiSum(int communicator, double limit_seconds, std::int64_t piece_bytes)
    : communicator_(communicator), limit_(limit_seconds), piece_bytes_(piece_bytes) {
  require_mpi(purpose_);
  Integer handle = communicator, rank = 0, size = 0;
  require_own_ranks(purpose_, handle);
  call(purpose_, "mpi_comm_rank_", &handle, &rank);
  call(purpose_, "mpi_comm_size_", &handle, &size);
  rank_ = rank;
  size_ = size;
}

void MpiSum::average(void* values, std::int64_t count, int dtype, std::int64_t network) {
  const std::lock_guard<std::mutex> lock(mutex_);
  purpose_ = name_of(network);
  const bool is_complex = dtype == FPT_COMPLEX64 || dtype == FPT_COMPLEX128;
  const bool is_double = dtype == FPT_FLOAT64 || dtype == FPT_COMPLEX128;
  const bool is_narrow = dtype == FPT_FLOAT16 || dtype == FPT_BFLOAT16;
  if (!is_complex && !is_double && !is_narrow && dtype != FPT_FLOAT32)
    fail(FPT_ERR_DTYPE, purpose_, ": real and complex numbers can be averaged, and these are none");
  const std::size_t length = static_cast<std::size_t>(count) * (is_complex ? 2 : 1);
  std::int64_t& calls = calls_[network];
  ++calls;
  if (size_ == 1) return;
  const int mine = static_cast<int>((calls + offset * network) % turn);

  // The counter of calls: two digits, each as a one among zeros, so that the sums tell whether all ranks have the same
  const auto exchange = [&](auto& numbers) {
    using Number = typename std::decay_t<decltype(numbers)>::value_type;
    numbers.resize(length + places);
    numbers[length + static_cast<std::size_t>(mine % base)] = 1;
    numbers[length + static_cast<std::size_t>(base + mine / base)] = 1;
    call_roll();
    reduce(numbers);
    double digits[places];
    std::copy(numbers.begin() + static_cast<std::ptrdiff_t>(length), numbers.end(), digits);
    require_same_call(mine, digits);
    for (std::size_t i = 0; i < length; ++i) numbers[i] /= static_cast<Number>(size_);
  };
  const auto averages = [&](auto* numbers_of_caller) {
    std::vector numbers(numbers_of_caller, numbers_of_caller + length);
    exchange(numbers);
    std::copy_n(numbers.begin(), length, numbers_of_caller);
  };
  if (is_double) return averages(static_cast<double*>(values));
  if (!is_narrow) return averages(static_cast<float*>(values));
  std::vector<float> numbers(length);
  auto* narrow = static_cast<std::uint16_t*>(values);
  std::transform(narrow, narrow + length, numbers.begin(), dtype == FPT_FLOAT16 ? float_of_half : float_of_bfloat16);
  exchange(numbers);
  std::transform(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(length), narrow,
                 dtype == FPT_FLOAT16 ? half_of_float : bfloat16_of_float);
}

void MpiSum::combine(void* values, std::int64_t count, int dtype, Reduction reduction, const char* purpose) {
  const auto total = [&](auto number) {
    using Number = decltype(number);
    const auto* given = static_cast<const Number*>(values);
    std::vector<Number> numbers(given, given + count);
    reduce(numbers, reduction);
    std::memcpy(values, numbers.data(), numbers.size() * sizeof(Number));
  };
  const std::lock_guard<std::mutex> lock(mutex_);
  purpose_ = purpose;
  if (size_ == 1) return;
  call_roll();
  if (dtype == FPT_FLOAT32) return total(float{});
  if (dtype == FPT_FLOAT64) return total(double{});
  if (dtype == FPT_INT64) return total(std::int64_t{});
  fail(FPT_ERR_DTYPE, purpose, ": sums over ranks are made of real numbers and integers of 64 bits");
}

std::vector<double> MpiSum::gather(const std::vector<double>& mine, const char* purpose) {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size_));
  std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank_);
  combine(all.data(), static_cast<std::int64_t>(all.size()), FPT_FLOAT64, Reduction::sum, purpose);
  return all;
}

void MpiSum::skip(std::int64_t network) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++calls_[network];
}

template <class Number>
void MpiSum::reduce(std::vector<Number>& numbers, Reduction reduction) {
  if (!failure_.empty()) fail(FPT_ERR_PYTHON, purpose_, " cannot be done any more: earlier, ", failure_);
  require_mpi(purpose_);
  std::pair<Integer, Integer> chosen;
  if constexpr (std::is_same_v<Number, double>) {
    chosen = type_and_operation<double>(purpose_, reduction, "mpi_type_create_f90_real_", 15, 307);
  } else if constexpr (std::is_same_v<Number, float>) {
    chosen = type_and_operation<float>(purpose_, reduction, "mpi_type_create_f90_real_", 6, 37);
  } else {
    chosen = type_and_operation<std::int64_t>(purpose_, reduction, "mpi_type_create_f90_integer_", 18);
  }
  const auto most = static_cast<std::size_t>(piece_bytes_) / sizeof(Number);
  for (std::size_t begin = 0; begin < numbers.size(); begin += most) {
    const std::size_t count = std::min(most, numbers.size() - begin), bytes = count * sizeof(Number);
    auto pending = std::make_unique<Pending>();
    pending->mine.resize((bytes + sizeof(double) - 1) / sizeof(double));
    pending->sums.resize(pending->mine.size());
    std::memcpy(pending->mine.data(), numbers.data() + begin, bytes);
    Integer length = static_cast<Integer>(count), communicator = communicator_;
    call(purpose_, "mpi_iallreduce_", pending->mine.data(), pending->sums.data(), &length, &chosen.first,
         &chosen.second, &communicator, &pending->request);
    wait(pending);
    std::memcpy(numbers.data() + begin, pending->sums.data(), bytes);
  }
}

/// Until a sum is done; nobody waits in it for a rank that failed somewhere else.
void MpiSum::wait(std::unique_ptr<Pending>& pending) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(limit_);
  const double silent = std::min(rank_ < few ? silence : silence_of_many, limit_ / 2);
  const auto told_at = begin + std::chrono::duration<double>(silent);
  Clock::time_point look = begin + between_looks, ended_at{};
  int ended = -1;
  bool is_told = false;
  auto sleep = std::chrono::microseconds(1);
  while (true) {
    Integer done = 0;
    try {
      call(purpose_, "mpi_test_", &pending->request, &done, pending->status.data());
    } catch (const Error& failure) {
      give_up(pending, failure.text());
    }
    if (done) return;
    const Clock::time_point now = Clock::now();
    if (now < begin + eager) {
      sched_yield();
      continue;
    }
    if (!is_told && now >= told_at) {
      is_told = true;
      warn(concat("rank ", rank_, " of ", size_, " has waited ", silent, " s in ", purpose_,
                  " for others. All ranks of the communicator must call it, and not all have come. It waits for up to ",
                  limit_, " s"));
    }
    if (ended < 0 && now >= look) {
      look = now + between_looks;
      ended = rank_that_ended();
      ended_at = now;
    }
    if (ended >= 0 && (now >= ended_at + grace || now >= end))
      give_up(pending, concat("rank ", ended, " of ", size_, ", process ", static_cast<long>(process_of(ended)),
                              " of this node, has ended while rank ", rank_, " waited for it in ", purpose_));
    if (now >= end)
      give_up(pending,
              concat("rank ", rank_, " of ", size_, " has waited ", limit_, " s in ", purpose_,
                     " for the others. All ranks of the communicator must call it: look for one that failed before, "
                     "whose error was passed over (stat=), or that took another way through the program"));
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, longest_sleep);
  }
}

/// Each rank tells where it runs, once: so that a process that has ended can be told by its rank.
void MpiSum::call_roll() {
  if (!roll_.empty()) return;
  std::vector<double> roll(2 * static_cast<std::size_t>(size_));
  roll[2 * static_cast<std::size_t>(rank_)] = node_number();
  roll[2 * static_cast<std::size_t>(rank_) + 1] = static_cast<double>(getpid());
  reduce(roll);
  roll_ = std::move(roll);
}

double MpiSum::process_of(int rank) const { return roll_[2 * static_cast<std::size_t>(rank) + 1]; }

/// The first rank of this node whose process has ended, -1 if none has, or if that is not known.
int MpiSum::rank_that_ended() const {
  if (roll_.empty() || roll_[2 * static_cast<std::size_t>(rank_)] < 0) return -1;
  for (int each = 0; each < size_; ++each)
    if (roll_[2 * static_cast<std::size_t>(each)] == roll_[2 * static_cast<std::size_t>(rank_)] &&
        has_ended(process_of(each)))
      return each;
  return -1;
}

/// FPT_ERR_PYTHON unless all ranks were in the same call. The sums are the same everywhere, so all ranks come here.
void MpiSum::require_same_call(int mine, const double digits[]) {
  if (digits[mine % base] == size_ && digits[base + mine / base] == size_) return;
  std::vector<double> everywhere(static_cast<std::size_t>(size_));
  everywhere[static_cast<std::size_t>(rank_)] = mine;
  reduce(everywhere);
  std::vector<int> off;
  for (const double each : everywhere) {
    const int apart = (static_cast<int>(each) - mine + turn + turn / 2) % turn - turn / 2;
    off.push_back(apart);
  }
  fail(FPT_ERR_PYTHON, purpose_, ": the ranks are in different calls of it: ", told(off),
       ". As a rule an error was passed over on a rank (stat=) before it came here, or the ranks took other ways "
       "through the program. Nothing was averaged. End all ranks, and go on from a checkpoint");
}

/// What has been begun can neither be finished nor be taken back: MPI may still write there.
void MpiSum::give_up(std::unique_ptr<Pending>& pending, const std::string& text) {
  static_cast<void>(pending.release());
  failure_ = text;
  fail(FPT_ERR_PYTHON, text);
}

fpt_mpi_function function_of(Reduction reduction, int dtype) noexcept {
  if (dtype == FPT_FLOAT32) return function_for<float>(reduction);
  if (dtype == FPT_FLOAT64) return function_for<double>(reduction);
  if (dtype == FPT_INT64) return function_for<std::int64_t>(reduction);
  return nullptr;
}

}  // namespace fpt
