// SPDX-License-Identifier: MIT
#include "values/procedures.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"

namespace fpt {
namespace {

std::mutex procedures_mutex;

std::map<std::string, Procedure>& procedures() {
  static auto& known = *new std::map<std::string, Procedure>;
  return known;
}

}  // namespace

Procedure procedure_at(const std::string& name) {
  const std::lock_guard<std::mutex> lock(procedures_mutex);
  const auto found = procedures().find(name);
  if (found != procedures().end()) return found->second;
  std::string names;
  for (const auto& [known, procedure] : procedures()) names += (names.empty() ? "" : ", ") + known;
  fail(FPT_ERR_HOOK, "the program has registered no procedure \"", name,
       "\": ", names.empty() ? "there is none" : "there are " + names);
}

void register_procedure(std::string name, fpt_procedure forward, fpt_procedure adjoint, void* context,
                        int32_t outputs) {
  if (name.empty()) fail(FPT_ERR_ARGUMENT, "the name of a procedure is empty");
  if (!forward) fail(FPT_ERR_ARGUMENT, "procedure \"", name, "\" is null");
  if (outputs < 1) fail(FPT_ERR_ARGUMENT, "procedure \"", name, "\" needs one output at least, and has ", outputs);
  const std::lock_guard<std::mutex> lock(procedures_mutex);
  procedures()[std::move(name)] = {forward, adjoint, context, outputs};
}

}  // namespace fpt
