// SPDX-License-Identifier: MIT
#include "codec.h"

#include <lz4.h>
#include <zstd.h>

#include <new>
#include <vector>

namespace zcache {
namespace {

class Zstd final : public Codec {
 public:
  Zstd(int level, std::size_t most_bytes) : level_(level), out_(ZSTD_createCCtx()), in_(ZSTD_createDCtx()) {
    if (out_ == nullptr || in_ == nullptr) throw std::bad_alloc();
    // The workspace grows at the first use, by the size of what is compressed.
    const std::vector<std::byte> largest(most_bytes);
    std::vector<std::byte> to(ZSTD_compressBound(most_bytes));
    ZSTD_compressCCtx(out_, to.data(), to.size(), largest.data(), largest.size(), level_);
  }
  ~Zstd() override {
    ZSTD_freeCCtx(out_);
    ZSTD_freeDCtx(in_);
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override {
    const std::size_t bytes = ZSTD_compressCCtx(out_, to.data(), to.size(), from.data(), from.size(), level_);
    return ZSTD_isError(bytes) != 0 ? 0 : bytes;
  }
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override {
    return ZSTD_decompressDCtx(in_, to.data(), to.size(), from.data(), from.size()) == to.size();
  }

 private:
  int level_;
  ZSTD_CCtx* out_;
  ZSTD_DCtx* in_;
};

class Lz4 final : public Codec {
 public:
  explicit Lz4(int acceleration) : acceleration_(acceleration), state_(static_cast<std::size_t>(LZ4_sizeofState())) {}

  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override {
    const int bytes = LZ4_compress_fast_extState(state_.data(), reinterpret_cast<const char*>(from.data()),
                                                 reinterpret_cast<char*>(to.data()), static_cast<int>(from.size()),
                                                 static_cast<int>(to.size()), acceleration_);
    return static_cast<std::size_t>(bytes);
  }
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override {
    const int bytes =
        LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(to.data()),
                            static_cast<int>(from.size()), static_cast<int>(to.size()));
    return bytes >= 0 && static_cast<std::size_t>(bytes) == to.size();
  }

 private:
  int acceleration_;
  std::vector<std::byte> state_;  // operator new aligns it to 16; lz4 asks for 8
};

class None final : public Codec {
 public:
  std::size_t compress(std::span<const std::byte> /*from*/, std::span<std::byte> /*to*/) override { return 0; }
  bool decompress(std::span<const std::byte> /*from*/, std::span<std::byte> /*to*/) override { return false; }
};

}  // namespace

std::unique_ptr<Codec> make_codec(CodecKind kind, int level, std::size_t most_bytes) {
  switch (kind) {
    case CodecKind::kZstd:
      return std::make_unique<Zstd>(level, most_bytes);
    case CodecKind::kLz4:
      return std::make_unique<Lz4>(level);
    case CodecKind::kNone:
      break;
  }
  return std::make_unique<None>();
}

}  // namespace zcache
