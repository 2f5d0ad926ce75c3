// SPDX-License-Identifier: MIT
#include "direct/archive.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.hpp"

namespace fpt {
namespace {

// Records of the zip format, APPNOTE.TXT 6.3, sections 4.3.12 to 4.3.16; all numbers are little-endian.
constexpr uint32_t local_header = 0x04034b50, directory_entry = 0x02014b50, directory_end = 0x06054b50;
constexpr uint32_t directory_end_64 = 0x06064b50, locator_64 = 0x07064b50;
constexpr std::size_t size_of_end = 22, size_of_locator = 20, size_of_end_64 = 56, size_of_entry = 46;
constexpr std::size_t largest_comment = 65535;
constexpr uint64_t largest_directory = uint64_t{1} << 28;
// Code is all that torch compresses. A model that was packed again by hand may be more, in proportion.
constexpr uint64_t always_unpacked = uint64_t{1} << 28, largest_ratio = 100;

template <class T>
T number_at(std::string_view bytes, std::size_t at) noexcept {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[at + i]));
  return value;
}

std::string bytes_of(std::ifstream& file, uint64_t at, uint64_t count) {
  std::string bytes(count, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(file ? count : static_cast<std::size_t>(file.gcount()));
  return bytes;
}

/// The central directory; empty where there is none.
std::string directory_of(std::ifstream& file, uint64_t size) {
  const uint64_t tail_size = std::min<uint64_t>(size, size_of_end + largest_comment + size_of_locator);
  const uint64_t tail_begin = size - tail_size;
  const std::string tail = bytes_of(file, tail_begin, tail_size);
  for (std::size_t at = tail.size() < size_of_end ? 0 : tail.size() - size_of_end + 1; at-- > 0;) {
    if (number_at<uint32_t>(tail, at) != directory_end) continue;
    uint64_t length = number_at<uint32_t>(tail, at + 12), begin = number_at<uint32_t>(tail, at + 16);
    if (at >= size_of_locator && number_at<uint32_t>(tail, at - size_of_locator) == locator_64) {
      const std::string end = bytes_of(file, number_at<uint64_t>(tail, at - size_of_locator + 8), size_of_end_64);
      if (end.size() < size_of_end_64 || number_at<uint32_t>(end, 0) != directory_end_64) return {};
      length = number_at<uint64_t>(end, 40);
      begin = number_at<uint64_t>(end, 48);
    }
    if (begin > size || length > size - begin || length > largest_directory) return {};
    return bytes_of(file, begin, length);
  }
  return {};
}

/// Checkpoints end with a record of their own, see python/ftn_pytorch/checkpoint/file.py: 16 bytes of text, the format,
/// the kind, two lengths, and a digest of 32 bytes.
///
/// One that was cut off has no such record, and who reads it tells that: it is known by the entry that it begins with,
/// or by its name alone.
bool is_recording(std::ifstream& file, uint64_t size, bool has_its_name) {
  constexpr std::string_view magic = "ftn_pytorch ckpt", mark = "ftn_pytorch checkpoint";
  constexpr uint64_t size_of_closing = 72, kind_of_recordings = 1, size_of_start = 4096;
  const std::string record = bytes_of(file, size - std::min(size, size_of_closing), magic.size() + 8);
  if (record.size() == magic.size() + 8 && record.compare(0, magic.size(), magic) == 0)
    return number_at<uint32_t>(record, magic.size() + 4) == kind_of_recordings;
  return has_its_name || bytes_of(file, 0, std::min(size, size_of_start)).find(mark) != std::string::npos;
}

}  // namespace

ModelKind kind_of_model(const std::string& path) {
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) return ModelKind::other;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return ModelKind::other;
  const auto end = static_cast<std::streamoff>(file.tellg());
  if (is_recording(file, static_cast<uint64_t>(end), std::filesystem::path(path).extension() == ".ftr"))
    return ModelKind::recording;
  if (end < static_cast<std::streamoff>(size_of_end)) return ModelKind::other;
  if (number_at<uint32_t>(bytes_of(file, 0, 4) + std::string(4, '\0'), 0) != local_header) return ModelKind::other;

  const std::string directory = directory_of(file, static_cast<uint64_t>(end));
  // machine code goes by its own name only
  const bool may_be_package = std::filesystem::path(path).extension() == ".pt2";
  bool has_constants = false, has_code = false, is_package = false;
  uint64_t unpacked = 0;
  for (std::size_t at = 0; at + size_of_entry <= directory.size();) {
    if (number_at<uint32_t>(directory, at) != directory_entry) return ModelKind::other;
    const std::size_t name = number_at<uint16_t>(directory, at + 28), extra = number_at<uint16_t>(directory, at + 30),
                      comment = number_at<uint16_t>(directory, at + 32);
    std::string_view path_inside = std::string_view(directory).substr(at + size_of_entry, name);
    // everything lies in one folder, whose name is free: "net/code/...", "net/data.pkl"
    const std::size_t slash = path_inside.find('/');
    path_inside = slash == std::string_view::npos ? std::string_view() : path_inside.substr(slash + 1);
    is_package = is_package || path_inside.rfind("data/aotinductor/", 0) == 0;
    has_constants = has_constants || path_inside == "constants.pkl";
    has_code = has_code || path_inside.rfind("code/", 0) == 0;
    if (number_at<uint16_t>(directory, at + 10) != 0) unpacked += number_at<uint32_t>(directory, at + 24);
    at += size_of_entry + name + extra + comment;
  }
  if (!is_package && !(has_constants && has_code)) return ModelKind::other;
  if (unpacked > always_unpacked && unpacked / largest_ratio > static_cast<uint64_t>(end))
    fail(FPT_ERR_FORMAT, path, " would unpack to ", unpacked, " bytes, and has ", end,
         ": it is damaged or made to do harm");
  if (is_package) return may_be_package ? ModelKind::package : ModelKind::other;
  return ModelKind::torchscript;
}

void require_readable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    fail(FPT_ERR_FILE, path, " is no regular file");
  (void)kind_of_model(path);
}

}  // namespace fpt
