// SPDX-License-Identifier: MIT
//
// Values in the handle pool. What malloc cannot do is in tidy(): when compaction could give noticeably many pages back, each
// change of the cache moves a few values into fuller runs, until it is so no longer. Nobody ever waits for a whole
// compaction, and a cache that does not change pays nothing. What decides is what compaction could gain, not what the
// pages hold beyond the values: a part of that is rounding, and no move would change it.
#include <brimful/handle.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "value_memory.h"

namespace zcache {
namespace {

// The pool's statistics cost time by its classes and its objects, so they are asked for once in so many changes: a part
// of the number of values, and not below this.
constexpr std::size_t kLeastBetweenLooks = 512;
constexpr std::size_t kValuesALook = 16;

class HandleMemory final : public ValueMemory {
 public:
  explicit HandleMemory(const HandleSettings& settings) : settings_(settings) {
    brimful_handle_options options{};
    options.size = sizeof(options);
    options.host = brimful_pool_host_linux();
    options.most_object_bytes = settings.most_value_bytes;
    pool_ = brimful_handle_pool_create(&options);
    if (pool_ == nullptr) throw std::bad_alloc();
    classes_.resize(stats(nullptr, 0).classes);
  }
  ~HandleMemory() override { brimful_handle_pool_destroy(pool_); }
  HandleMemory(const HandleMemory&) = delete;
  HandleMemory& operator=(const HandleMemory&) = delete;

  Place store(Bytes bytes) override {
    brimful_handle handle = 0;
    void* to = nullptr;
    if (brimful_handle_alloc(pool_, bytes.size(), &handle) != BRIMFUL_HANDLE_OK) return 0;
    if (brimful_handle_map(pool_, handle, BRIMFUL_HANDLE_WRITE, &to) != BRIMFUL_HANDLE_OK) {
      brimful_handle_free(pool_, handle);
      return 0;
    }
    std::memcpy(to, bytes.data(), bytes.size());
    brimful_handle_unmap(pool_, handle);
    return handle;
  }

  const std::byte* open(Place place) override {
    void* from = nullptr;
    const bool mapped = brimful_handle_map(pool_, place, BRIMFUL_HANDLE_READ, &from) == BRIMFUL_HANDLE_OK;
    return mapped ? static_cast<const std::byte*>(from) : nullptr;
  }
  void close(Place place) override { brimful_handle_unmap(pool_, place); }
  void drop(Place place) override { brimful_handle_free(pool_, place); }

  void tidy(std::size_t stored_bytes) override {
    if (settings_.most_waste_percent < 0) return;
    if (++changes_ >= next_look_) look(stored_bytes);
    if (!compacting_) return;
    int more = 0;
    brimful_handle_compact(pool_, settings_.moves_a_step, &more);
    compacting_ = more != 0;
  }

  [[nodiscard]] Use use() const override {
    const brimful_handle_stats now = stats(nullptr, 0);
    return {now.held_bytes, now.metadata_bytes, now.moved};
  }

 private:
  brimful_handle_stats stats(brimful_handle_class_stats* classes, std::size_t count) const {
    brimful_handle_stats now{};
    now.size = sizeof(now);
    now.class_size = sizeof(brimful_handle_class_stats);
    brimful_handle_get_stats(pool_, &now, classes, count);
    return now;
  }

  // Decides whether to compact until the next look.
  void look(std::size_t stored_bytes) {
    const std::size_t objects = stats(classes_.data(), classes_.size()).objects;
    next_look_ = changes_ + std::max(kLeastBetweenLooks, objects / kValuesALook);
    std::size_t reclaimable = 0;
    for (const brimful_handle_class_stats& one : classes_) reclaimable += one.compactable * one.run_bytes;
    compacting_ =
        static_cast<double>(reclaimable) > static_cast<double>(stored_bytes) * settings_.most_waste_percent / 100;
  }

  HandleSettings settings_;
  brimful_handle_pool* pool_;
  std::vector<brimful_handle_class_stats> classes_;
  std::size_t changes_ = 0;
  std::size_t next_look_ = kLeastBetweenLooks;
  bool compacting_ = false;
};

}  // namespace

std::unique_ptr<ValueMemory> make_handle_memory(const HandleSettings& settings) {
  return std::make_unique<HandleMemory>(settings);
}

}  // namespace zcache
