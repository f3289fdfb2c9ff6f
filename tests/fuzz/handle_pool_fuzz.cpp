// SPDX-License-Identifier: MIT
//
// A handle pool whose host refuses now and then, against a model: contents, mappings and their rules, sizes, and handles that
// are stale or made up. What is mapped does not move, whatever compaction does meanwhile.
#include <cstring>
#include <vector>

#include "brimful/handle.h"
#include "input.h"
#include "oracle.h"
#include "test_host.h"

namespace brimful::fuzz {
namespace {

struct Object {
  brimful_handle handle = 0;
  std::size_t bytes = 0;
  std::uint8_t colour = 0;
  unsigned readers = 0;
  bool has_writer = false;
  void* mapped = nullptr;  // where it is while it is mapped
};

class Pool {
 public:
  explicit Pool(Input& input) : host_(std::size_t{4096} << input.below(3)) {
    brimful_handle_options options = {};
    options.size = sizeof options;
    options.host = host_.table();
    options.most_object_bytes = input.below(4) == 0 ? 16 + input.number(2) % (65536 - 15) : 0;
    pool_ = brimful_handle_pool_create(&options);
    expect(pool_ != nullptr, "a pool is created");
    most_ = options.most_object_bytes == 0 ? 4096 : options.most_object_bytes;
  }
  ~Pool() {
    brimful_handle_pool_destroy(pool_);
    expect(host_.bytes() == 0 && !host_.has_fault(), "all pages come back");
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    if (what < 90) return allocate(input);
    if (what < 140) return free_one(input);
    if (what < 170) return map(input);
    if (what < 200) return unmap(input);
    if (what < 220) {
      brimful_handle_compact(pool_, input.below(32), nullptr);
      return;
    }
    if (what < 232) return try_wrong(input);
    if (what < 236) return host_.fail_after(input.below(8));
    if (what < 242) return host_.fail_never();
    expect_whole();
  }

  void expect_whole() {
    const void* where = nullptr;
    const char* const broken = brimful_handle_check(pool_, &where);
    if (broken != nullptr) fail(broken, where);
    std::size_t bytes = 0;
    std::size_t mapped = 0;
    for (const Object& object : objects_) {
      bytes += object.bytes;
      mapped += object.mapped != nullptr ? 1 : 0;
    }
    brimful_handle_stats stats = {};
    stats.size = sizeof stats;
    expect(brimful_handle_get_stats(pool_, &stats, nullptr, 0) == BRIMFUL_HANDLE_OK, "a pool has statistics");
    expect(stats.objects == objects_.size() && stats.live_bytes == bytes, "the pool counts its objects");
    expect(brimful_handle_count_mapped(pool_) == mapped, "the pool counts what is mapped");
  }

 private:
  static char letter(const Object& object, std::size_t n) { return static_cast<char>(object.colour + n * 11); }

  void allocate(Input& input) {
    Object object;
    object.bytes = input.flag() ? input.number(1) : input.number(2);
    object.handle = 77;
    const brimful_handle_result result = brimful_handle_alloc(pool_, object.bytes, &object.handle);
    if (result != BRIMFUL_HANDLE_OK) {
      expect(object.handle == 77, "what fails changes nothing");
      expect((result == BRIMFUL_HANDLE_INVALID) == (object.bytes == 0), "an object has bytes");
      expect((result == BRIMFUL_HANDLE_TOO_LARGE) == (object.bytes > most_), "too large is what is above the most");
      return;
    }
    expect(object.bytes != 0 && object.bytes <= most_, "what makes no sense is refused");
    object.colour = next_colour_ = static_cast<std::uint8_t>(next_colour_ + 37);
    void* at = nullptr;
    expect(brimful_handle_map(pool_, object.handle, BRIMFUL_HANDLE_WRITE, &at) == BRIMFUL_HANDLE_OK,
           "a new object is mapped");
    expect(reinterpret_cast<std::uintptr_t>(at) % 16 == 0, "an object is aligned to 16", at);
    for (std::size_t n = 0; n < object.bytes; ++n) static_cast<char*>(at)[n] = letter(object, n);
    expect(brimful_handle_unmap(pool_, object.handle) == BRIMFUL_HANDLE_OK, "what is mapped is unmapped");
    objects_.push_back(object);
  }

  Object* any(Input& input) { return objects_.empty() ? nullptr : &objects_[input.below(objects_.size())]; }

  void expect_content(const Object& object, const void* at) {
    for (std::size_t n = 0; n < object.bytes; ++n)
      expect(static_cast<const char*>(at)[n] == letter(object, n), "an object holds what was written to it", at);
  }

  void map(Input& input) {
    Object* const object = any(input);
    if (object == nullptr) return;
    const auto mode = static_cast<brimful_handle_mode>(1 + input.below(3));
    const bool reads = mode == BRIMFUL_HANDLE_READ;
    void* at = nullptr;
    const brimful_handle_result result = brimful_handle_map(pool_, object->handle, mode, &at);
    const bool may = !object->has_writer && (reads || object->readers == 0);
    expect(result == (may ? BRIMFUL_HANDLE_OK : BRIMFUL_HANDLE_MAPPED), "many read, one writes");
    if (!may) return;
    expect(object->mapped == nullptr || object->mapped == at, "what is mapped does not move", at);
    object->mapped = at;
    object->readers += reads ? 1 : 0;
    object->has_writer = !reads;
    expect_content(*object, at);
  }

  void unmap(Input& input) {
    Object* const object = any(input);
    if (object == nullptr) return;
    const brimful_handle_result result = brimful_handle_unmap(pool_, object->handle);
    expect(result == (object->mapped != nullptr ? BRIMFUL_HANDLE_OK : BRIMFUL_HANDLE_UNMAPPED),
           "what is mapped is unmapped");
    if (object->mapped == nullptr) return;
    expect_content(*object, object->mapped);
    if (object->has_writer) {
      object->has_writer = false;
    } else {
      --object->readers;
    }
    if (object->readers == 0) object->mapped = nullptr;
  }

  void free_one(Input& input) {
    if (objects_.empty()) return;
    const std::size_t number = input.below(objects_.size());
    const Object object = objects_[number];
    std::size_t bytes = 0;
    expect(brimful_handle_size(pool_, object.handle, &bytes) == BRIMFUL_HANDLE_OK && bytes == object.bytes,
           "an object has the size that was asked for");
    const brimful_handle_result result = brimful_handle_free(pool_, object.handle);
    expect(result == (object.mapped != nullptr ? BRIMFUL_HANDLE_MAPPED : BRIMFUL_HANDLE_OK),
           "what is mapped is not freed");
    if (object.mapped != nullptr) return;
    objects_[number] = objects_.back();
    objects_.pop_back();
    stale_ = object.handle;
  }

  void try_wrong(Input& input) {
    const bool is_stale = stale_ != 0 && input.flag();
    const brimful_handle handle = is_stale ? stale_ : input.number(8);
    for (const Object& object : objects_) {
      if (object.handle == handle) return;
    }
    void* at = this;
    std::size_t bytes = 1;
    const brimful_handle_result mapped = brimful_handle_map(pool_, handle, BRIMFUL_HANDLE_READ, &at);
    expect(mapped == BRIMFUL_HANDLE_STALE || mapped == BRIMFUL_HANDLE_FOREIGN, "a wrong handle is known");
    expect(!is_stale || mapped == BRIMFUL_HANDLE_STALE, "a freed handle is stale");
    expect(at == this, "what fails changes nothing");
    expect(brimful_handle_unmap(pool_, handle) == mapped && brimful_handle_free(pool_, handle) == mapped &&
               brimful_handle_size(pool_, handle, &bytes) == mapped && bytes == 1,
           "all calls say the same of a wrong handle");
  }

  pools::TestHost host_;
  brimful_handle_pool* pool_ = nullptr;
  std::size_t most_ = 0;
  std::vector<Object> objects_;
  brimful_handle stale_ = 0;
  std::uint8_t next_colour_ = 0;
};

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  brimful::fuzz::Pool pool(input);
  while (!input.is_empty()) pool.step(input);
  pool.expect_whole();
  return 0;
}
