// SPDX-License-Identifier: MIT
/// Integers that name objects: kind, generation and slot, so that a stale or mixed-up handle is noticed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace fpt {

enum class HandleKind : int64_t { tensor = 1, wrap = 2, results = 3, module = 4, copy = 5, scope = 6 };

/// True for a handle of this kind, whether it names anything or not.
constexpr bool is_handle_of(HandleKind kind, int64_t handle) noexcept {
  return handle >> 60 == static_cast<int64_t>(kind);
}

/// Why an object ended, for messages.
using HandleEnd = std::shared_ptr<const std::string>;

/// Table of the objects of one kind. Looking up takes no lock; inserting and removing do, and removing needs no memory.
///
/// A handle is kind << 60 | generation << 32 | slot. Slots live in chunks that are never freed, so a look-up may
/// run beside an insertion. Removing an object while another thread uses it is for the caller to prevent, except where
/// all users hold a Use and whoever frees it calls retire().
template <class T, HandleKind kind>
class HandleTable {
  static constexpr uint32_t no_slot = UINT32_MAX;

  /// The state is generation << 32 | retired | users: one word, so that whoever takes the last user away sees whether
  /// the object has been retired. Users of a stale handle count for a moment, too.
  struct Slot {
    std::atomic<uint64_t> state{uint64_t{1} << 32};
    std::atomic<T*> object{nullptr};
    HandleEnd end;            // of the object that was here last, for messages; null: it was freed
    uint32_t next = no_slot;  // the slot freed after this one, while both are free
  };

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

  [[nodiscard]] int64_t insert(std::unique_ptr<T> object) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (first_free_ == no_slot) add_chunk();
    const uint32_t index = first_free_;
    Slot& slot = slot_at(index);
    first_free_ = std::exchange(slot.next, no_slot);
    if (first_free_ == no_slot) last_free_ = no_slot;
    const auto generation = static_cast<int64_t>(slot.state.load(std::memory_order_relaxed) >> 32 & ((1u << 28) - 1));
    slot.object.store(object.release(), std::memory_order_release);
    return static_cast<int64_t>(kind) << 60 | generation << 32 | index;
  }

  /// The object of a handle. FPT_ERR_NOT_LOADED for 0, FPT_ERR_FREED for a stale one, FPT_ERR_ARGUMENT for a handle
  /// of another kind.
  T& at(int64_t handle) const {
    if (T* object = find(handle)) return *object;
    refuse(handle);
  }

  /// The object of a handle, or null.
  T* find(int64_t handle) const noexcept {
    Slot* slot = slot_of(handle);
    return slot && names(slot->state.load(std::memory_order_acquire), handle)
               ? slot->object.load(std::memory_order_acquire)
               : nullptr;
  }

  /// Take an object out of the table; null for 0 and stale handles.
  /// @param end  why it ended, if it was not freed: what using its handle fails with
  std::unique_ptr<T> remove(int64_t handle, HandleEnd end = nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    T* object = find(handle);
    if (!object) return nullptr;
    Slot& slot = *slot_of(handle);
    slot.end = std::move(end);
    slot.state.fetch_add(one_generation);
    reuse(slot, handle);
    return std::unique_ptr<T>(object);
  }

  /// The same for an object that others may use at the moment: it is destroyed as soon as the last Use has ended.
  void retire(int64_t handle) {
    Slot* slot;
    uint64_t before;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!find(handle)) return;
      slot = slot_of(handle);
      before = slot->state.fetch_add(one_generation | retired);
    }
    if ((before & all_users) == 0) dispose(*slot, handle);
  }

  /// Refuse more objects than so many chunks hold, from 1 to the limit of the table.
  /// @return what the limit was
  uint32_t limit_to(uint32_t chunks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(limit_, chunks);
  }

  static constexpr uint32_t chunk_size = 1024;
  static constexpr uint32_t max_chunks = 1 << 12;

  /// Keeps an object alive while it is used. FPT_ERR_NOT_LOADED, FPT_ERR_FREED, FPT_ERR_ARGUMENT as at() says.
  /// @param call  the call that needs it, for these messages
  class Use {
   public:
    Use(HandleTable& table, int64_t handle, std::string_view call = {})
        : table_(table), handle_(handle), slot_(table.slot_of(handle)) {
      if (slot_ && names(slot_->state.fetch_add(1), handle)) object_ = slot_->object.load(std::memory_order_acquire);
      if (object_) return;
      if (slot_) end();
      table.refuse(handle, call);
    }
    ~Use() { end(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }

   private:
    void end() noexcept {
      if ((slot_->state.fetch_sub(1) & low_bits) == (retired | 1)) table_.dispose(*slot_, handle_);
    }

    HandleTable& table_;
    int64_t handle_;
    Slot* slot_;
    T* object_ = nullptr;
  };

 private:
  static constexpr uint64_t one_generation = uint64_t{1} << 32, low_bits = one_generation - 1;
  static constexpr uint64_t retired = uint64_t{1} << 31, all_users = retired - 1;

  static bool names(uint64_t state, int64_t handle) noexcept {
    return ((state ^ static_cast<uint64_t>(handle)) >> 32 & ((1u << 28) - 1)) == 0 && (state & retired) == 0;
  }

  /// Out of line, so that at() can be inlined where it is called often.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(int64_t handle, std::string_view call = {}) const {
    const char* colon = call.empty() ? "" : ": ";
    if (handle == 0) fail(FPT_ERR_NOT_LOADED, call, colon, "this is not ", noun_, " yet: call ", maker_, " first");
    if (!is_handle_of(kind, handle)) fail(FPT_ERR_ARGUMENT, call, colon, "this is a handle, but not that of ", noun_);
    if (const HandleEnd end = end_of(handle)) fail(FPT_ERR_FREED, call, colon, "this was ", noun_, ' ', *end);
    fail(FPT_ERR_FREED, call, colon, "this was ", noun_, " and has been freed: call ", maker_,
         " again before it is used");
  }

  /// Why the object of a handle ended, if it was the last one in its slot and was not freed.
  HandleEnd end_of(int64_t handle) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Slot* slot = slot_of(handle);
    return slot && names(slot->state.load() - one_generation, handle) ? slot->end : nullptr;
  }

  /// The slot that a handle points to, whatever lies in it now; null for a handle of another kind or made up.
  Slot* slot_of(int64_t handle) const noexcept {
    if (!is_handle_of(kind, handle)) return nullptr;
    const auto index = static_cast<uint32_t>(handle);
    if (index / chunk_size >= max_chunks) return nullptr;
    Slot* chunk = chunks_[index / chunk_size].load(std::memory_order_acquire);
    return chunk ? &chunk[index % chunk_size] : nullptr;
  }

  /// With the mutex held. The slot freed longest ago is used next, so stale handles stay noticeable.
  void reuse(Slot& slot, int64_t handle) noexcept {
    slot.object.store(nullptr, std::memory_order_release);
    append_free(static_cast<uint32_t>(handle));
  }

  void append_free(uint32_t index) noexcept {
    (last_free_ == no_slot ? first_free_ : slot_at(last_free_).next) = index;
    last_free_ = index;
  }

  /// Destroy a retired object that nobody uses; of several threads that have seen it so, one does.
  void dispose(Slot& slot, int64_t handle) noexcept {
    uint64_t state = slot.state.load();
    do {
      if ((state & low_bits) != retired) return;
    } while (!slot.state.compare_exchange_weak(state, state & ~retired));
    // destroyed without the mutex: it may run Python code
    const std::unique_ptr<T> object(slot.object.exchange(nullptr));
    const std::lock_guard<std::mutex> lock(mutex_);
    reuse(slot, handle);
  }

  Slot& slot_at(uint32_t index) noexcept { return chunks_[index / chunk_size].load()[index % chunk_size]; }

  void add_chunk() {
    if (used_chunks_ >= limit_)
      fail(FPT_ERR_MEMORY, "more than ", limit_ * chunk_size, " handles are in use, each for ", noun_);
    chunks_[used_chunks_].store(new Slot[chunk_size], std::memory_order_release);
    for (uint32_t i = 0; i < chunk_size; ++i) append_free(used_chunks_ * chunk_size + i);
    ++used_chunks_;
  }

  const char* noun_;
  const char* maker_;
  mutable std::mutex mutex_;
  uint32_t first_free_ = no_slot, last_free_ = no_slot;
  uint32_t used_chunks_ = 0, limit_ = max_chunks;
  std::unique_ptr<std::atomic<Slot*>[]> chunks_{new std::atomic<Slot*>[max_chunks]()};
};

}  // namespace fpt
