// SPDX-License-Identifier: MIT
/// Checkpoints and saved recordings, read and written without Python: what the archive of a file holds.
///
/// It is what torch.save writes of {"ftn_pytorch checkpoint": 1, "state": text, "arrays": {name: tensor},
/// "numbers": {name: real}, "generator": bytes, "holes": [...], "recording": {...}, "ranks": {...}}; the last five may
/// be missing, and "ranks" is passed over.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/model.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

struct ArchiveContent {
  std::string state;                ///< JSON text, never parsed
  c10::IValue holes;                ///< of the state, see pieces.hpp; None in a file of an earlier version
  std::vector<NamedTensor> arrays;  ///< on the host; views of one storage in the file share it here
  std::vector<std::pair<std::string, double>> numbers;
  at::Tensor generator;       ///< uint8 [n], undefined where the file has none
  c10::IValue recording;      ///< a dict, None in a plain checkpoint; plain values only, its tensors are checked, too
  std::string description;    ///< JSON text, never parsed
  bool is_recording = false;  ///< a saved recording: it has tapes
};

/// What a file holds. The digest is checked before anything else is looked at; then nothing is trusted.
///
/// FPT_ERR_FILE if it cannot be read, FPT_ERR_CORRUPT if it is damaged, FPT_ERR_FORMAT if it is no checkpoint with
/// tensors, or has entries that no checkpoint has.
[[nodiscard]] ArchiveContent read_archive(const std::string& file);

/// Write a file, completely or not at all; Python reads it, too. Tensors may be on a device; a storage is written once,
/// whole, however many tensors share it. "%r" in the name is the rank.
///
/// FPT_ERR_FILE and FPT_ERR_LOCKED as replace_file, FPT_ERR_RESULT_TYPE for a value that cannot be stored.
void write_archive(const std::string& file, const ArchiveContent& content);

}  // namespace fpt::direct
