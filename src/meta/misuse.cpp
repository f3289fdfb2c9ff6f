// SPDX-License-Identifier: MIT
//
// meta/misuse.h. Tests match the beginning of these lines: `brimful: <fault>: <call>(<pointer>`.
#include "meta/misuse.h"

#include <stdlib.h>

#include "config/options.h"
#include "os/report.h"
#include "os/stack_text.h"

namespace brimful::meta {
namespace {

const void* as_pointer(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

[[noreturn]] void end_with(const Line& line) {
  os::report(line);
  if (config::report_kind() == config::Report::kStack) os::report_own_stack("called from:");
  abort();
}

}  // namespace

void report_double_free(const char* call, const Slab& slab, std::uint64_t index) {
  end_with(Line() << "double free: " << call << "(" << as_pointer(slab.object(index)) << "): this "
                  << slab.shape().bytes << "-byte object (size class " << slab.shape().bytes << ") is already free");
}

void report_bad_pointer(const char* call, std::uint64_t pointer, bool was_used, const Header* owner) {
  Line line;
  const auto begin = [&](const char* fault) -> Line& {
    return line << fault << ": " << call << "(" << as_pointer(pointer) << "): ";
  };
  if (owner != nullptr && owner->kind == Kind::kSlab) {
    const auto& slab = *static_cast<const Slab*>(owner);
    const std::uint32_t bytes = slab.shape().bytes;
    const std::uint64_t inside = (pointer - slab.start) % bytes;
    if (inside != 0 && (pointer - slab.start) / bytes < slab.count()) {
      begin(pointer % kObjectAlignment != 0 ? "misaligned pointer" : "interior pointer");
      if (pointer % kObjectAlignment != 0) line << "not a multiple of 16; ";
      line << inside << " bytes into a " << bytes << "-byte object (size class " << bytes << ") that starts at "
           << as_pointer(pointer - inside);
      end_with(line);
    }
  } else if (owner != nullptr) {
    const auto& run = *static_cast<const Run*>(owner);
    begin(pointer % kObjectAlignment != 0 ? "misaligned pointer" : "interior pointer");
    if (pointer % kObjectAlignment != 0) line << "not a multiple of 16; ";
    line << pointer - run.start << " bytes into a block of " << run.bytes << " bytes that starts at "
         << as_pointer(run.start);
    end_with(line);
  }
  if (pointer % kObjectAlignment != 0) {
    end_with(begin("misaligned pointer") << "not a multiple of 16");
  }
  if (was_used) {
    end_with(begin("double free") << "its memory was already given back, or never allocated");
  }
  end_with(begin("foreign pointer") << "not from this heap");
}

void report_overflow(std::uint64_t object, std::size_t usable, std::size_t offset) {
  end_with(Line() << "buffer overflow: free(" << as_pointer(object) << "): the byte at "
                  << as_pointer(object + usable + offset) << " was written to, " << std::uint64_t{offset}
                  << (offset == 1 ? " byte" : " bytes") << " behind the end of the " << std::uint64_t{usable}
                  << "-byte object " << as_pointer(object) << " to " << as_pointer(object + usable));
}

void report_written_when_free(std::uint64_t object, std::size_t usable, std::size_t offset) {
  end_with(Line() << "use after free: malloc(" << as_pointer(object) << "): the byte at " << as_pointer(object + offset)
                  << " was written to, " << std::uint64_t{offset} << (offset == 1 ? " byte" : " bytes") << " into the "
                  << std::uint64_t{usable} << "-byte object " << as_pointer(object) << " to "
                  << as_pointer(object + usable) << ", while it was free");
}

void report_destroyed(const char* call, std::uint64_t pointer) {
  end_with(Line() << "use after destroy: " << call << "(" << as_pointer(pointer)
                  << "): the heap of this block was destroyed");
}

void report_bad_heap(const char* call, std::uint64_t handle, bool was_heap) {
  end_with(Line() << (was_heap ? "use after destroy: " : "foreign heap: ") << call << "(" << as_pointer(handle)
                  << (was_heap ? "): this heap was destroyed" : "): there never was such a heap"));
}

void report_wrong_size(std::uint64_t pointer, std::size_t claimed, std::size_t usable) {
  end_with(Line() << "wrong size: free_sized(" << as_pointer(pointer) << ", " << std::uint64_t{claimed}
                  << "): the object is of size class " << std::uint64_t{usable});
}

}  // namespace brimful::meta
