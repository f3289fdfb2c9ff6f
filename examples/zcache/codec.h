// SPDX-License-Identifier: MIT
//
// Compression by zstd, lz4 or not at all. One object for one thread; all memory that the libraries need is taken at
// creation, because what is measured afterwards is the values' memory alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace zcache {

class Codec {
 public:
  Codec() = default;
  virtual ~Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // Bytes written to `to`, or 0: they do not fit, which is how values that do not compress show.
  virtual std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) = 0;

  // Whether `from` became exactly the bytes of `to`.
  virtual bool decompress(std::span<const std::byte> from, std::span<std::byte> to) = 0;
};

enum class CodecKind : std::uint8_t { kZstd, kLz4, kNone };

// `level`: as the library counts; 0: its default (lz4: the acceleration, 1). Throws std::bad_alloc.
std::unique_ptr<Codec> make_codec(CodecKind kind, int level, std::size_t most_bytes);

}  // namespace zcache
