// SPDX-License-Identifier: MIT
//
// Values in the process's malloc. LD_PRELOAD decides which that is.
#include <cstdlib>
#include <cstring>

#include "value_memory.h"

namespace zcache {
namespace {

class MallocMemory final : public ValueMemory {
 public:
  Place store(Bytes bytes) override {
    void* pointer = std::malloc(bytes.size());
    if (pointer != nullptr) std::memcpy(pointer, bytes.data(), bytes.size());
    return reinterpret_cast<Place>(pointer);
  }
  const std::byte* open(Place place) override { return reinterpret_cast<const std::byte*>(place); }
  void close(Place /*place*/) override {}
  void drop(Place place) override { std::free(reinterpret_cast<void*>(place)); }
  void tidy(std::size_t /*stored_bytes*/) override {}
  [[nodiscard]] Use use() const override { return {}; }
};

}  // namespace

std::unique_ptr<ValueMemory> make_malloc_memory() { return std::make_unique<MallocMemory>(); }

}  // namespace zcache
