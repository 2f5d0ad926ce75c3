// SPDX-License-Identifier: MIT
/// Mutated checkpoints and saved recordings for the reader of the plug-in: refused, or taken and then used.
///
/// FPT_FUZZ_INPUTS    how many inputs, default 2000; an input is one mutated file
/// FPT_FUZZ_SEED      of the first input, default 0; the others follow it. make stress takes it from the clock
/// FPT_TEST_ARCHIVES  the folder with the files that are mutated, those of tests/cpp/plugin/recording/make_archives.py
///
/// A quarter has other values in its tapes; of the rest bytes, records and opcodes were changed, mostly below a digest
/// that is right. Each is an error of format or of damage, or what is in it lies within memory: every element is read.
/// torch is not built with a sanitizer, but the memory of its tensors is watched by that of this program.
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

#include "base/error.hpp"
#include "changed_value.hpp"
#include "ftr/plain_values.hpp"
#include "ftr/refusal.hpp"
#include "ftr/saved_tape.hpp"
#include "ftr/sha256.hpp"
#include "plugin/recording/archive_file.hpp"

namespace fpt::direct {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t closing_record = 40, digest = 32;
constexpr int64_t most_read = 100000;  // of the elements of one tensor: expanded ones may have any number of them

char replay_line[200];

extern "C" void tell_seed(int number) {
  const ssize_t ignored = write(STDERR_FILENO, replay_line, std::strlen(replay_line));
  (void)ignored;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// A file in parts that are put together again.
struct Seed {
  std::string archive, description;
  uint32_t kind = 0;
  std::vector<std::pair<std::string, std::string>> records;  ///< the pickle is the first; empty if torch reads none
};

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string with_closing(const std::string& archive, const std::string& description, uint32_t format, uint32_t kind) {
  std::string file = archive + description + "ftn_pytorch ckpt";
  const uint64_t lengths[] = {archive.size(), description.size()};
  file.append(reinterpret_cast<const char*>(&format), 4).append(reinterpret_cast<const char*>(&kind), 4);
  file.append(reinterpret_cast<const char*>(lengths), 16);
  ftr::Sha256 sum;
  sum.update(file);
  const auto bytes = sum.digest();
  return file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Seed seed_of(const fs::path& path) {
  const std::string file = bytes_of(path);
  uint64_t lengths[2];
  Seed seed;
  const char* closing = file.data() + file.size() - digest - closing_record;
  std::memcpy(&seed.kind, closing + 20, 4);
  std::memcpy(lengths, closing + 24, 16);
  seed.archive = file.substr(0, lengths[0]);
  seed.description = file.substr(lengths[0], lengths[1]);
  try {
    std::istringstream stream(seed.archive);
    caffe2::serialize::PyTorchStreamReader reader(&stream);
    seed.records.emplace_back("data.pkl", "");
    for (const std::string& name : reader.getAllRecords())
      if (name.rfind("data/", 0) == 0 || name == "byteorder") seed.records.emplace_back(name, "");
    for (auto& [name, bytes] : seed.records) {
      const auto [data, size] = reader.getRecord(name);
      bytes.assign(static_cast<const char*>(data.get()), size);
    }
  } catch (const std::exception&) {
    seed.records.clear();
  }
  return seed;
}

std::string packed(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string archive;
  caffe2::serialize::PyTorchStreamWriter writer([&archive](const void* data, std::size_t size) {
    archive.append(static_cast<const char*>(data), size);
    return size;
  });
  for (const auto& [name, bytes] : records) writer.writeRecord(name, bytes.data(), bytes.size());
  writer.writeEndOfFile();
  return archive;
}

class Mutation {
 public:
  explicit Mutation(uint64_t seed) : random_(seed) {}

  /// A whole file; whether its digest is right.
  std::pair<std::string, bool> of(const std::vector<Seed>& seeds) {
    const Seed& seed = seeds[below(seeds.size())];
    if (below(8) == 0) {
      std::string file = with_closing(seed.archive, seed.description, 2, seed.kind);
      const std::string whole = file;
      change(file, 1 + below(3));
      return {file, file == whole};
    }
    std::string archive = seed.archive, description = seed.description;
    if (seed.records.empty() || below(4) == 0) {
      change(archive, 1 + below(4), below(2) ? archive.size() * 3 / 4 : 0);
    } else {
      auto records = seed.records;
      const std::size_t pickles = below(2) ? 1 : 1 + below(4);
      if (const Seed& other = seeds[below(seeds.size())]; below(8) == 0 && !other.records.empty())
        records[0].second = other.records[0].second;
      change_pickle(records[0].second, pickles);
      if (below(6) == 0) change(records[below(records.size())].second, 1);
      if (below(20) == 0 && records.size() > 1)
        records.erase(records.begin() + 1 + static_cast<long>(below(records.size() - 1)));
      archive = packed(records);
    }
    if (below(20) == 0) change(description, 1);
    return {with_closing(archive, description, below(40) ? 2 : any_number(), below(40) ? seed.kind : any_number()),
            true};
  }

 private:
  std::size_t below(std::size_t n) { return n ? random_() % n : 0; }
  uint32_t any_number() {
    constexpr uint32_t numbers[] = {0, 1, 2, 3, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
    return below(4) ? numbers[below(std::size(numbers))] : static_cast<uint32_t>(random_());
  }

  void change(std::string& bytes, std::size_t times, std::size_t from = 0) {
    for (; times-- > 0 && bytes.size() > from;) {
      const std::size_t at = from + below(bytes.size() - from);
      switch (below(7)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 1:
          bytes[at] = static_cast<char>(random_());
          break;
        case 2:
          bytes.resize(at);
          break;
        case 3:
          bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64)));
          break;
        case 4:
          bytes.erase(at, 1 + below(16));
          break;
        case 5: {
          const uint32_t value = any_number();
          bytes.replace(at, std::min<std::size_t>(4, bytes.size() - at),
                        std::string(reinterpret_cast<const char*>(&value), 4));
          break;
        }
        default:
          bytes.replace(at, std::min<std::size_t>(8, bytes.size() - at), bytes.substr(below(bytes.size()), 8));
      }
    }
  }

  /// Single opcodes and numbers, so that most of the pickle stays one.
  void change_pickle(std::string& bytes, std::size_t times) {
    static const std::string opcodes = "().N0Q012]}GIJKLMRSTUVXabcdefghijlopqrstu\x80\x81\x85\x86\x87\x88\x89\x8a\x8b";
    for (; times-- > 0 && bytes.size() > 2;) {
      const std::size_t at = 2 + below(bytes.size() - 2);
      const std::size_t integer = bytes.find_first_of("KMJ", at);
      switch (below(9)) {
        case 0:
          bytes[at] = opcodes[below(opcodes.size())];
          break;
        case 1:
          bytes.insert(at, 1, opcodes[below(opcodes.size())]);
          break;
        case 2:
        case 3:
        case 4:
          if (integer == std::string::npos || bytes.size() - integer < 5) break;
          if (bytes[integer] == 'J') {
            const uint32_t value = any_number();
            bytes.replace(integer + 1, 4, reinterpret_cast<const char*>(&value), 4);
          } else if (below(3) == 0) {  // a wider one
            const uint64_t value = below(2) ? any_number() : random_() >> below(60);
            std::string wide = "\x8a\x08";
            wide.append(reinterpret_cast<const char*>(&value), 8);
            bytes.replace(integer, bytes[integer] == 'K' ? 2 : 3, wide);
          } else {
            bytes[integer + 1] = static_cast<char>(any_number());
          }
          break;
        case 5: {
          std::string memo = below(2) ? "h" : "q";
          bytes.insert(at, memo + static_cast<char>(below(256)));
          break;
        }
        case 6: {
          const std::size_t from = below(bytes.size());
          bytes.insert(at, bytes.substr(from, 1 + below(200)));
          break;
        }
        default:
          change(bytes, 1, 2);
      }
    }
  }

  std::mt19937_64 random_;
};

uint64_t read_bytes = 0;

/// Each element; of those beyond a number the corners, between which all others lie.
void read_elements(const at::Tensor& tensor) {
  const auto* bytes = static_cast<const volatile unsigned char*>(tensor.const_data_ptr());
  const auto size = static_cast<int64_t>(tensor.element_size());
  if (tensor.numel() == 0) return;
  std::vector<int64_t> index(static_cast<std::size_t>(tensor.dim()), 0);
  const bool has_few = tensor.numel() <= most_read;
  for (int64_t done = 0; done < most_read; ++done) {
    int64_t at = 0;
    for (int64_t axis = 0; axis < tensor.dim(); ++axis)
      at += index[static_cast<std::size_t>(axis)] * tensor.stride(axis);
    for (int64_t i = 0; i < size; ++i) read_bytes += bytes[at * size + i];
    int64_t axis = tensor.dim() - 1;
    for (; axis >= 0; --axis) {
      int64_t& place = index[static_cast<std::size_t>(axis)];
      const int64_t step = has_few ? 1 : std::max<int64_t>(tensor.size(axis) - 1, 1);
      place += step;
      if (place < tensor.size(axis)) break;
      place = 0;
    }
    if (axis < 0) return;
  }
}

void walk(const c10::IValue& value) {
  if (value.isTensor()) return read_elements(value.toTensor());
  if (value.isString()) read_bytes += value.toStringRef().size();
  if (value.isTuple())
    for (const c10::IValue& element : value.toTupleRef().elements()) walk(element);
  if (value.isList())
    for (const c10::IValue& element : value.toListRef()) walk(element);
  if (value.isGenericDict())
    for (const auto& entry : value.toGenericDict()) {
      walk(entry.key());
      walk(entry.value());
    }
}

/// Tapes that were.
uint64_t understood = 0;

/// The tapes are understood, or refused.
void read_tapes(const ftr::Content& content) {
  std::vector<std::string> names;
  for (const auto& number : content.numbers) names.push_back(number.first);
  const ftr::SavedContext context{"a function", names, at::kCPU, [](torch::jit::Stack&) {}};
  try {
    for (const auto& entry : ftr::entry_in(content.recording, "functions").toGenericDict())
      for (const c10::IValue& tape : ftr::items_in(entry.value(), "the recordings of a function"))
        understood += ftr::read_tape(tape, context).inputs.size() < 100;
  } catch (const ftr::Refusal& refusal) {
    EXPECT_EQ(refusal.why(), ftr::Why::format) << refusal.what();
  } catch (const c10::Error&) {
    // what holds the tapes is no dict
  }
}

/// What is done with a file that was taken. Whatever reads "recording" further is called here.
void use(const ftr::Content& content) {
  for (const auto& [name, tensor] : content.arrays) read_elements(tensor);
  if (content.generator.defined()) read_elements(content.generator);
  walk(content.recording);
  if (content.is_recording) read_tapes(content);
}

/// What can be read can be written, and is the same then; only memory that is of two types is refused.
void write_again(const ftr::Content& content, const std::string& file) {
  try {
    write_archive(file, content);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), FPT_ERR_RESULT_TYPE) << error.text();
    return;
  }
  const ftr::Content again = read_archive(file);
  use(again);
  EXPECT_EQ(again.state, content.state);
  EXPECT_EQ(again.arrays.size(), content.arrays.size());
  EXPECT_EQ(again.numbers.size(), content.numbers.size());
}

TEST(FuzzArchive, AnyFileIsRefusedOrLiesWithinMemory) {
  std::vector<Seed> seeds;
  std::vector<ftr::Content> recordings;
  const fs::path folder = fs::temp_directory_path() / ("ftn_pytorch_fuzz_" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(std::getenv("FPT_TEST_ARCHIVES"))) {
    seeds.push_back(seed_of(entry.path()));
    if (entry.path().filename().string().rfind("refused_", 0) == 0 || entry.path().stem() == "numpy") continue;
    const std::string ours = folder / entry.path().filename();
    const ftr::Content content = read_archive(entry.path());
    write_archive(ours, content);
    if (content.is_recording) recordings.push_back(content);
    for (int i = 0; i < 4; ++i) seeds.push_back(seeds.back());  // files that are taken, more often than others
    seeds.push_back(seed_of(ours));
  }
  ASSERT_GT(seeds.size(), 20u);
  const uint64_t seed = number("FPT_FUZZ_SEED", 0), inputs = number("FPT_FUZZ_INPUTS", 2000);
  std::cout << "FPT_FUZZ_SEED=" << seed << " FPT_FUZZ_INPUTS=" << inputs << std::endl;
  for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) std::signal(crash, tell_seed);
  const std::string file = folder / "mutated.ftr", copy = folder / "copy.ftr";
  std::map<std::string, uint64_t> outcomes;
  for (uint64_t current = seed; current < seed + inputs && !HasFailure(); ++current) {
    std::snprintf(replay_line, sizeof replay_line, "\nreplay: FPT_FUZZ_SEED=%llu FPT_FUZZ_INPUTS=1 fuzz_archive\n",
                  static_cast<unsigned long long>(current));
    bool is_right = true;
    if (current % 4 == 0) {
      ftr::Content content = recordings[current / 4 % recordings.size()];
      content.recording = ChangedValue(current).of(content.recording, 1 + current / 4 % 3);
      content.is_recording = content.recording.isGenericDict();
      if (!content.is_recording) content.recording = c10::IValue();
      write_archive(file, content);
    } else {
      std::string bytes;
      std::tie(bytes, is_right) = Mutation(current).of(seeds);
      std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    }
    try {
      const ftr::Content content = read_archive(file);
      EXPECT_TRUE(is_right) << "a wrong digest was taken";
      use(content);
      if (current % 8 == 1) write_again(content, copy);
      ++outcomes["taken"];
    } catch (const Error& error) {
      const bool is_known = error.status() == FPT_ERR_FORMAT || error.status() == FPT_ERR_CORRUPT;
      EXPECT_TRUE(is_known) << status_name(error.status()) << ": " << error.text();
      ++outcomes[error.status() == FPT_ERR_FORMAT ? "refused" : "damaged"];
    }
    if (HasFailure()) std::cout << replay_line << std::endl;
  }
  outcomes["tapes understood"] = understood;
  for (const auto& [what, count] : outcomes) std::cout << what << ": " << count << std::endl;
  fs::remove_all(folder);
  if (inputs >= 2000) {
    EXPECT_GT(outcomes["taken"], inputs / 50);
    EXPECT_GT(outcomes["refused"], inputs / 50);
    EXPECT_GT(outcomes["damaged"], inputs / 50);
    EXPECT_GT(understood, 0u);
  }
}

}  // namespace
}  // namespace fpt::direct
