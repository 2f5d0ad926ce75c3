// SPDX-License-Identifier: MIT
#include "base/mpi_ranks.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <type_traits>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace fpt {
namespace {

using Integer = std::int32_t;

constexpr const char* load = "load(..., communicator=)";
constexpr const char* needed = "load(..., communicator=) needs a running MPI";
constexpr Integer untouched = 0x5a5a5a5a;
constexpr std::size_t most_arguments = 12;
constexpr std::size_t status_size = 64;  // integers; more than MPI_STATUS_SIZE of any implementation
constexpr auto longest_sleep = std::chrono::microseconds(1000);
// So long a wait asks again and again, as a sleep of any length takes 50 us; others that want the core get it.
constexpr auto eager = std::chrono::microseconds(200);
// Until who waits says so, in seconds: a few ranks, and only then all of many
constexpr double silence = 30, silence_of_many = 300;
constexpr int few = 8;
constexpr auto between_looks = std::chrono::milliseconds(250);
constexpr auto grace = std::chrono::seconds(2);  // what an ended rank has sent may still be under way

/// Address of a subroutine of MPI. purpose: what failures begin with.
void* find(const char* purpose, const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (!found)
    fail(FPT_ERR_ARGUMENT, purpose, ": there is no ", name,
         " in this process, a Fortran binding of MPI. Either the program does not use MPI, or the bindings of its MPI "
         "have other names, or MPI was linked statically or came with a library that was opened with RTLD_LOCAL");
  return found;
}

template <std::size_t... each>
void call_address(void* subroutine, const std::vector<void*>& arguments, std::index_sequence<each...>) {
  using Subroutine = void (*)(std::enable_if_t<(each < most_arguments), void*>...);
  reinterpret_cast<Subroutine>(subroutine)(arguments[each]...);
}

template <std::size_t count = 1>
void call_found(void* subroutine, const std::vector<void*>& arguments) {
  if (arguments.size() == count) return call_address(subroutine, arguments, std::make_index_sequence<count>());
  if constexpr (count < most_arguments) return call_found<count + 1>(subroutine, arguments);
  fail(FPT_ERR_INTERNAL, "a call of MPI with ", arguments.size(), " arguments");
}

/// Call what was found under a name.
void run(const char* purpose, const char* name, void* subroutine, std::vector<void*>& arguments) {
  Integer code = 0;
  arguments.push_back(&code);
  call_found(subroutine, arguments);
  arguments.pop_back();
  if (code != 0)
    fail(FPT_ERR_PYTHON, purpose, ": ", std::string(name, std::strlen(name) - 1), " has failed with error code ", code,
         " of MPI");
}

void require_mpi() {
  struct {
    Integer flag, behind;  // which an MPI with integers of 8 bytes writes to, too
  } answer{0, untouched}, code{0, untouched};
  call_found(find(needed, "mpi_initialized_"), {&answer, &code});
  if (answer.behind != untouched || code.behind != untouched)
    fail(FPT_ERR_ARGUMENT, load, ": the MPI of this process has integers of 8 bytes (ILP64), and is called with ",
         "those of 4: link the program with the MPI that has these");
  if (!answer.flag) fail(FPT_ERR_ARGUMENT, needed, ", and MPI_Init has not been called yet");
  call_mpi(needed, "mpi_finalized_", {&answer.flag});
  if (answer.flag) fail(FPT_ERR_ARGUMENT, needed, ", and MPI_Finalize has been called: do this before");
}

/// MPI would end the program. Processes that nobody spawned have no parent: that is the null handle.
void require_own_ranks(Integer handle) {
  Integer parent = 0, is_inter = 0;
  call_mpi(load, "mpi_comm_get_parent_", {&parent});
  if (handle != parent) call_mpi(load, "mpi_comm_test_inter_", {&handle, &is_inter});
  if (handle == parent || is_inter)
    fail(FPT_ERR_ARGUMENT, load, " is the handle ", handle,
         ", which is that of MPI_COMM_NULL or of an inter-communicator: pass a communicator that this rank is a part ",
         "of, and do not load on ranks that are outside of it");
}

/// True for a process of this node that is gone, or that nobody has waited for yet.
bool has_ended(double process) {
  std::ifstream file("/proc/" + std::to_string(static_cast<long>(process)) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const std::size_t name = line.rfind(')');
  return name != std::string::npos && name + 2 < line.size() && (line[name + 2] == 'Z' || line[name + 2] == 'X');
}

}  // namespace

void call_mpi(const char* purpose, const char* name, std::vector<void*> arguments) {
  run(purpose, name, find(purpose, name), arguments);
}

/// One operation under way, with what MPI may write to until it is done.
struct MpiRanks::Begun {
  Integer request = 0, done = 0, status[status_size] = {};
  std::shared_ptr<void> memory;
};

MpiRanks::MpiRanks(int communicator, double limit_seconds) : communicator_(communicator), limit_(limit_seconds) {
  require_mpi();
  Integer handle = communicator;
  require_own_ranks(handle);
  call_mpi(load, "mpi_comm_rank_", {&handle, &rank_});
  call_mpi(load, "mpi_comm_size_", {&handle, &size_});
}

void MpiRanks::give_up(const std::string& why) {
  const std::lock_guard<std::mutex> lock(turn_);
  keep(nullptr, why);
}

void MpiRanks::wait_up_to(double limit_seconds) {
  const std::lock_guard<std::mutex> lock(turn_);
  limit_ = limit_seconds;
}

void MpiRanks::require_usable(const char* purpose) const {
  if (!is_usable_) fail(FPT_ERR_PYTHON, purpose, " cannot be done any more: earlier, ", failure_);
  require_mpi();
}

void MpiRanks::exchange(const char* name, std::vector<void*> arguments, const char* purpose,
                        std::shared_ptr<void> memory) {
  const std::lock_guard<std::mutex> lock(turn_);
  require_usable(purpose);
  auto begun = std::make_unique<Begun>();
  begun->memory = std::move(memory);
  Integer handle = communicator_;
  arguments.insert(arguments.end(), {&handle, &begun->request});
  call_mpi(purpose, name, std::move(arguments));
  try {
    wait(*begun, purpose);
  } catch (const Error& failure) {
    keep(std::move(begun), failure.text());
    throw;
  } catch (...) {
    keep(std::move(begun), concat(purpose, " was interrupted"));
    throw;
  }
}

/// What has been begun can neither be finished nor be taken back: MPI may still write there.
void MpiRanks::keep(std::unique_ptr<Begun> begun, const std::string& why) {
  static_cast<void>(begun.release());
  if (is_usable_) failure_ = why;
  is_usable_ = false;
}

/// Until an operation is done.
void MpiRanks::wait(Begun& begun, const char* purpose) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(limit_);
  const double silent = std::min(rank_ < few ? silence : silence_of_many, limit_ / 2);
  const auto told_at = begin + std::chrono::duration<double>(silent);
  Clock::time_point look = begin + between_looks, ended_at{};
  int ended = -1;
  bool is_told = false;
  auto sleep = std::chrono::microseconds(1);
  constexpr const char* test = "mpi_test_";
  void* const subroutine = find(purpose, test);
  std::vector<void*> arguments = {&begun.request, &begun.done, begun.status};
  while (true) {
    run(purpose, test, subroutine, arguments);
    if (begun.done) return;
    const Clock::time_point now = Clock::now();
    if (now < begin + eager) {
      sched_yield();
      continue;
    }
    if (!is_told && now >= told_at) {
      is_told = true;
      warn(concat("rank ", rank_, " of ", size_, " has waited ", silent, " s in ", purpose,
                  " for others. All ranks of the communicator must call it, and not all have come. It waits for up to ",
                  limit_, " s"));
    }
    if (now >= look) {
      look = now + between_looks;
      if (meanwhile_) meanwhile_();
      if (ended < 0) {
        ended = rank_that_ended();
        ended_at = now;
      }
    }
    if (ended >= 0 && (now >= ended_at + grace || now >= end))
      fail(FPT_ERR_PYTHON, "rank ", ended, " of ", size_, ", process ", static_cast<long>(process_of(ended)),
           " of this node, has ended while rank ", rank_, " waited for it in ", purpose);
    if (now >= end)
      fail(FPT_ERR_PYTHON, "rank ", rank_, " of ", size_, " has waited ", limit_, " s in ", purpose,
           " for the others. All ranks of the communicator must call it: look for one that failed before, whose error "
           "was passed over (stat=), or that took another way through the program");
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, longest_sleep);
  }
}

std::pair<double, double> MpiRanks::node_and_process() {
  const auto process = static_cast<double>(getpid());
  char host[256] = "", space[256] = "";
  gethostname(host, sizeof host - 1);
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return {-1, process};
  return {static_cast<double>(exact_in_double(hash_of(concat(host, '|', space)))), process};
}

double MpiRanks::process_of(int rank) const { return roll_[2 * static_cast<std::size_t>(rank) + 1]; }

/// The first rank of this node whose process has ended, -1 if none has, or if that is not known.
int MpiRanks::rank_that_ended() const {
  if (roll_.empty() || roll_[2 * static_cast<std::size_t>(rank_)] < 0) return -1;
  for (int each = 0; each < size_; ++each)
    if (roll_[2 * static_cast<std::size_t>(each)] == roll_[2 * static_cast<std::size_t>(rank_)] &&
        has_ended(process_of(each)))
      return each;
  return -1;
}

}  // namespace fpt
