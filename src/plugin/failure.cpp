// SPDX-License-Identifier: MIT
#include "plugin/failure.hpp"

#include <mutex>
#include <new>
#include <set>
#include <typeinfo>

#include "ftr/refusal.hpp"

namespace fpt::direct {
namespace {

/// Cut a block that begins with `begin` at the first empty line after it, or at the end.
void cut(std::string& text, std::string_view begin) {
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    std::size_t end = at;
    // the frames: lines that begin with "frame #", after the line that was found
    do {
      end = text.find('\n', end);
      if (end != std::string::npos) ++end;
    } while (end != std::string::npos && text.compare(end, 7, "frame #") == 0);
    text.erase(at, end == std::string::npos ? end : end - at);
  }
}

/// The interpreter of TorchScript throws std::runtime_error, whatever was thrown inside it.
bool tells_lack_of_memory(const std::string& text) noexcept {
  return text.find("DefaultCPUAllocator: ") != std::string::npos ||
         text.find("CUDA out of memory. ") != std::string::npos;
}

class Warnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (told_.size() < max_told && told_.insert(warning.msg()).second) warn(concat("torch: ", warning.msg()));
  }

 private:
  static constexpr std::size_t max_told = 1000;
  std::mutex mutex_;
  std::set<std::string> told_;
};

fpt_status status_of(ftr::Why why) noexcept {
  switch (why) {
    case ftr::Why::file:
      return FPT_ERR_FILE;
    case ftr::Why::corrupt:
      return FPT_ERR_CORRUPT;
    case ftr::Why::format:
      return FPT_ERR_FORMAT;
    case ftr::Why::function:
    case ftr::Why::state:
      return FPT_ERR_HOOK;
    case ftr::Why::signature:
      return FPT_ERR_SIGNATURE;
    case ftr::Why::dtype:
      return FPT_ERR_DTYPE;
    case ftr::Why::shape:
      return FPT_ERR_SHAPE;
    case ftr::Why::argument:
      return FPT_ERR_ARGUMENT;
  }
  return FPT_ERR_INTERNAL;
}

/// Who has a handler of his own, such as torch in Python, keeps it.
bool take_over_warnings() {
  static Warnings& ours = *new Warnings;
  if (typeid(*c10::WarningUtils::get_warning_handler()) == typeid(c10::WarningHandler))
    c10::WarningUtils::set_warning_handler(&ours);
  return true;
}

}  // namespace

void hear_warnings() { [[maybe_unused]] static thread_local const bool hears = take_over_warnings(); }

std::string message_of(const std::exception& exception) {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  std::string text = error ? error->what_without_backtrace() : exception.what();
  cut(text, "Exception raised from ");
  cut(text, "C++ CapturedTraceback:");
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void rethrow_as(fpt_status status, const std::string& context, const std::string& end) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const ftr::Refusal& refusal) {
    fail(status_of(refusal.why()), as_utf8(refusal.what()));
  } catch (const c10::OutOfMemoryError& error) {
    fail(FPT_ERR_MEMORY, context, ": ", message_of(error));
  } catch (const std::bad_alloc&) {
    fail(FPT_ERR_MEMORY, context, ": out of memory");
  } catch (const std::exception& error) {
    const std::string text = message_of(error);
    if (tells_lack_of_memory(text)) fail(FPT_ERR_MEMORY, context, ": ", text);
    fail(status, context, ": ", text, end);
  } catch (...) {
    fail(status, context, ": an exception of unknown type", end);
  }
}

}  // namespace fpt::direct
