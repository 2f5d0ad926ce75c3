// SPDX-License-Identifier: MIT
/// Integers that name objects: kind, generation and slot, so that a stale or mixed-up handle is noticed.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "base/error.hpp"

namespace fpt {

enum class HandleKind : int64_t {
  tensor = 1,
  wrap = 2,
  results = 3,
  module = 4,
  copy = 5,
  direct_module = 6,
  direct_results = 7
};

/// Table of the objects of one kind. Looking up takes no lock; inserting and removing do.
///
/// A handle is kind << 60 | generation << 32 | slot. Slots live in chunks that are never freed, so a look-up may
/// run beside an insertion. Removing an object while another thread uses it is for the caller to prevent.
template <class T, HandleKind kind>
class HandleTable {
 public:
  /// @param noun what error texts call an object, with its article: "a module"
  /// @param maker the call that makes one: "load"
  HandleTable(const char* noun, const char* maker) : noun_(noun), maker_(maker) {}

  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  /// The tables of the library live as long as the process, and this is for those of tests.
  ~HandleTable() {
    for (uint32_t chunk = 0; chunk < used_chunks_; ++chunk) {
      Slot* slots = chunks_[chunk].load();
      for (uint32_t i = 0; i < chunk_size; ++i) delete slots[i].object.load();
      delete[] slots;
    }
  }

  int64_t insert(std::unique_ptr<T> object) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) add_chunk();
    const uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slot_at(index);
    const uint32_t generation = slot.generation.load(std::memory_order_relaxed);
    slot.object.store(object.release(), std::memory_order_release);
    return static_cast<int64_t>(kind) << 60 | static_cast<int64_t>(generation) << 32 | index;
  }

  /// The object of a handle. FPT_ERR_NOT_LOADED for 0, FPT_ERR_FREED for a stale one, FPT_ERR_ARGUMENT for a handle
  /// of another kind.
  T& at(int64_t handle) const {
    if (T* object = find(handle)) return *object;
    refuse(handle);
  }

  /// The object of a handle, or null.
  T* find(int64_t handle) const noexcept {
    if (handle >> 60 != static_cast<int64_t>(kind)) return nullptr;
    const uint32_t index = static_cast<uint32_t>(handle);
    const Slot* chunk = index / chunk_size < max_chunks
                            ? chunks_[index / chunk_size].load(std::memory_order_acquire)
                            : nullptr;
    if (!chunk) return nullptr;
    const Slot& slot = chunk[index % chunk_size];
    if (slot.generation.load(std::memory_order_acquire) != (static_cast<uint32_t>(handle >> 32) & max_generation))
      return nullptr;
    return slot.object.load(std::memory_order_acquire);
  }

  /// Take an object out of the table; null for 0 and stale handles.
  std::unique_ptr<T> remove(int64_t handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    T* object = find(handle);
    if (!object) return nullptr;
    const uint32_t index = static_cast<uint32_t>(handle);
    Slot& slot = slot_at(index);
    slot.object.store(nullptr, std::memory_order_release);
    slot.generation.store((slot.generation.load() + 1) & max_generation, std::memory_order_release);
    free_.push_front(index);  // the slot freed longest ago is used next, so stale handles stay noticeable
    return std::unique_ptr<T>(object);
  }

 private:
  struct Slot {
    std::atomic<uint32_t> generation{1};
    std::atomic<T*> object{nullptr};
  };
  static constexpr uint32_t chunk_size = 1024;
  static constexpr uint32_t max_chunks = 1 << 12;
  static constexpr uint32_t max_generation = (1u << 28) - 1;

  /// Out of line, so that at() can be inlined where it is called often.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(int64_t handle) const {
    if (handle == 0) fail(FPT_ERR_NOT_LOADED, "this is not ", noun_, " yet: call ", maker_, " first");
    if (handle >> 60 != static_cast<int64_t>(kind)) fail(FPT_ERR_ARGUMENT, "this is a handle, but not that of ", noun_);
    fail(FPT_ERR_FREED, "this was ", noun_, " and has been freed: call ", maker_, " again before it is used");
  }

  Slot& slot_at(uint32_t index) { return chunks_[index / chunk_size].load()[index % chunk_size]; }

  void add_chunk() {
    if (used_chunks_ == max_chunks) fail(FPT_ERR_MEMORY, "more than 4 million handles are in use");
    chunks_[used_chunks_].store(new Slot[chunk_size], std::memory_order_release);
    for (uint32_t i = 0; i < chunk_size; ++i) free_.push_back(used_chunks_ * chunk_size + chunk_size - 1 - i);
    ++used_chunks_;
  }

  const char* noun_;
  const char* maker_;
  std::mutex mutex_;
  std::deque<uint32_t> free_;
  uint32_t used_chunks_ = 0;
  std::unique_ptr<std::atomic<Slot*>[]> chunks_{new std::atomic<Slot*>[max_chunks]()};
};

}  // namespace fpt
