// SPDX-License-Identifier: MIT
/// What the archive of a file holds: a saved recording, or a checkpoint of one.
///
/// It is what torch.save writes of {"ftn_pytorch checkpoint": 1, "state": text, "arrays": {name: tensor},
/// "numbers": {name: real}, "generator": bytes, "holes": [...], "recording": {...}, "ranks": {...}}; the last five may
/// be missing, and "ranks" is passed over.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ftr/checkpoint_file.hpp"
#include "ftr/torch.hpp"

namespace ftr {

using NamedTensor = std::pair<std::string, at::Tensor>;

struct Content {
  std::string state;                ///< JSON text, never parsed
  c10::IValue holes;                ///< of the state, see holes.hpp; None in a file of an earlier version
  std::vector<NamedTensor> arrays;  ///< on the host; views of one storage in the file share it here
  std::vector<std::pair<std::string, double>> numbers;
  at::Tensor generator;       ///< uint8 [n], undefined where the file has none
  c10::IValue recording;      ///< a dict, None in a plain checkpoint; plain values only, its tensors are checked, too
  std::string description;    ///< JSON text, never parsed
  bool is_recording = false;  ///< a saved recording: it has tapes
};

/// What a file holds. The digest is checked before anything else is looked at; then nothing is trusted.
///
/// Why::file if it cannot be read, Why::corrupt if it is damaged, Why::format if it is no checkpoint with tensors, or
/// has entries that no checkpoint has.
[[nodiscard]] Content read_content(const std::string& path);

/// The same of an opened file. What torch's own reader throws of an archive is no Refusal.
[[nodiscard]] Content read_content(const CheckpointFile& file, Numbers numbers = Numbers::read);

}  // namespace ftr
