// SPDX-License-Identifier: MIT
//
// Values in the handle pool. What malloc cannot do is in tidy(): when compaction could give noticeably many pages back, each
// change of the cache moves a few values into fuller runs, until it is so no longer. Nobody ever waits for a whole
// compaction, and a cache that does not change pays nothing. What decides is what compaction could gain, not what the
// pages hold beyond the values: a part of that is rounding, and no move would change it.
#include <brimful/handle.h>

#include <cstring>
#include <new>
#include <vector>

#include "value_memory.h"

namespace zcache {
namespace {

// Looking at the pool's statistics takes the lock of every class, so it is done once in this many changes.
constexpr std::size_t kLookEvery = 512;

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
    if (brimful_handle_map(pool_, handle, BRIMFUL_HANDLE_WRITE, &to) != BRIMFUL_HANDLE_OK) return 0;
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
    if (++changes_ % kLookEvery == 0) {
      // Begins at the threshold and goes on to half of it: to the last page would be many moves for little.
      const double percent = settings_.most_waste_percent / (compacting_ ? 2 : 1);
      compacting_ = static_cast<double>(reclaimable()) > static_cast<double>(stored_bytes) * percent / 100;
    }
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

  // Bytes that compaction could give back now.
  std::size_t reclaimable() {
    stats(classes_.data(), classes_.size());
    std::size_t bytes = 0;
    for (const brimful_handle_class_stats& one : classes_) bytes += one.compactable * one.run_bytes;
    return bytes;
  }

  HandleSettings settings_;
  brimful_handle_pool* pool_;
  std::vector<brimful_handle_class_stats> classes_;
  std::size_t changes_ = 0;
  bool compacting_ = false;
};

}  // namespace

std::unique_ptr<ValueMemory> make_handle_memory(const HandleSettings& settings) {
  return std::make_unique<HandleMemory>(settings);
}

}  // namespace zcache
