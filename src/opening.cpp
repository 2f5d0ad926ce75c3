// SPDX-License-Identifier: MIT
#include "opening.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/kept_lock.hpp"
#include "base/last_script.hpp"
#include "base/paths.hpp"
#include "base/per_thread.hpp"
#include "base/visit.hpp"
#include "calls/python_side.hpp"
#include "direct/backend.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/torch_side.hpp"
#include "node/remote_runner.hpp"
#include "observe/observe.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

struct KeptDiagnosis {
  std::string text;
};

std::string& kept_diagnosis() { return PerThread<KeptDiagnosis>::get().text; }

}  // namespace

std::unique_ptr<Runner> open_runner(int32_t kind, const std::string& file, Args options, Args config) {
  const Options chosen = parse_options(options);
  if (chosen.per != Per::rank) return std::make_unique<RemoteRunner>(kind, file, chosen, options, config);
  std::unique_ptr<Runner> direct = open_directly(kind, file, chosen, options, config);
  return direct ? std::move(direct) : python_side().load(kind, file, chosen, options, config);
}

void replace_module(fpt_module* module, std::unique_ptr<Runner> runner) {
  const fpt_module before = *module;
  *module = runners().insert(std::move(runner));
  runners().retire(before);
}

fpt_module torch_module(bool same_layout) {
  static std::mutex mutex;
  static std::atomic<fpt_module> modules[2];
  std::atomic<fpt_module>& module = modules[same_layout];
  if (const fpt_module known = module.load(std::memory_order_acquire)) return known;
  const Visit visit;
  const WithoutKeptLock others;
  leave_last_script();
  start_observing();
  std::unique_ptr<Runner> made = torch_functions(same_layout);
  const std::lock_guard<std::mutex> lock(mutex);
  if (module == 0) module = runners().insert(std::move(made));
  return module;
}

bool layout_of(Args args) {
  for (const fpt_arg& arg : args)
    if (is_tensor_handle(arg.handle)) return named_at(arg.handle)->same_layout();
  return false;
}

void diagnose(const char* floating_point, int team) {
  Diagnosis found;
  try {
    DiagnosedFacts facts;
    facts.floating_point = floating_point;
    facts.core = own_file().string();
    facts.direct_torch = text_of_plugin();
    facts.direct_obstacle = direct_obstacle();
    facts.openmp_threads = team;
    found = python_side().diagnose(facts);
    kept_diagnosis() = std::move(found.lines);
  } catch (const Error& error) {
    kept_diagnosis() = as_utf8(error.text());
    throw;
  }
  if (found.status != FPT_OK) fail(found.status, found.reason);
}

const std::string& diagnosis() { return kept_diagnosis(); }

}  // namespace fpt
