// SPDX-License-Identifier: MIT
#include "plugin/model/attributes.hpp"

#include <map>

namespace fpt::direct {
namespace {

struct Place {
  torch::jit::ObjectPtr part;
  std::size_t slot;
  c10::TypePtr type;
};

/// By name. The mode of a part is not among them: who runs the model chooses it.
std::map<std::string, Place> attributes_of(const torch::jit::Module& module) {
  std::map<std::string, Place> found;
  for (const auto& part : module.named_modules()) {
    const auto type = part.value.type();
    for (std::size_t slot = 0; slot < type->numAttributes(); ++slot) {
      const std::string& name = type->getAttributeName(slot);
      const c10::TypePtr& kind = type->getAttribute(slot);
      if (type->is_parameter(slot) || type->is_buffer(slot) || kind->is_module() || name == "training") continue;
      found[part.name.empty() ? name : part.name + "." + name] = {part.value._ivalue(), slot, kind};
    }
  }
  return found;
}

/// Each file has classes of its own, also where they are the same.
bool is_of_classes(const c10::Type& type) { return type.annotation_str().find("__torch__.") != std::string::npos; }

}  // namespace

std::vector<std::string> different_attributes(const torch::jit::Module& from, const torch::jit::Module& to) {
  const auto theirs = attributes_of(from), ours = attributes_of(to);
  std::vector<std::string> different;
  for (const auto& [name, place] : ours) {
    const auto found = theirs.find(name);
    if (found == theirs.end() || !(*found->second.type == *place.type || is_of_classes(*place.type)))
      different.push_back(name);
  }
  for (const auto& [name, place] : theirs)
    if (ours.count(name) == 0) different.push_back(name);
  return different;
}

void take_attributes(const torch::jit::Module& from, const torch::jit::Module& to) {
  const auto theirs = attributes_of(from);
  for (const auto& [name, place] : attributes_of(to)) {
    const Place& found = theirs.at(name);
    if (*found.type == *place.type) place.part->setSlot(place.slot, found.part->getSlot(found.slot));
  }
}

}  // namespace fpt::direct
