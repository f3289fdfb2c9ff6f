// SPDX-License-Identifier: MIT
#include "stacks/sample_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "meta/sample_record.h"

namespace brimful::observer::stacks {

namespace {

constexpr std::size_t kHead = 32;
constexpr char kMagic[] = "brimful samples ";
constexpr char kFileVersion[] = "brimful samples 1\n";
constexpr std::size_t kName = 8;

bool read_whole(const std::string& path, std::vector<unsigned char>& into, std::int64_t& written, std::string& why) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    why = std::strerror(errno);
    return false;
  }
  struct stat status {};
  ::fstat(::fileno(file), &status);
  written = status.st_mtime;
  unsigned char buffer[1 << 16];
  for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    into.insert(into.end(), buffer, buffer + count);
  }
  const bool failed = std::ferror(file) != 0;
  if (failed) why = std::strerror(errno);
  std::fclose(file);
  return !failed;
}

// The program is what was mapped first that is a file.
std::string first_file(const std::string& maps) {
  const std::size_t slash = maps.find('/');
  return slash == std::string::npos ? std::string() : maps.substr(slash, maps.find('\n', slash) - slash);
}

}  // namespace

bool SampleFile::read_control(std::span<const unsigned char> content, std::string& why) {
  if (content.size() < sizeof(meta::SampleControl)) {
    why = "its control block is of another version";
    return false;
  }
  std::memcpy(&taken_, content.data() + offsetof(meta::SampleControl, taken), sizeof taken_);
  std::memcpy(&lost_, content.data() + offsetof(meta::SampleControl, lost), sizeof lost_);
  const unsigned char* bytes = content.data() + offsetof(meta::SampleControl, allocated_bytes);
  std::memcpy(&allocated_bytes_, bytes, sizeof allocated_bytes_);
  std::uint32_t record = 0;
  std::memcpy(&record, content.data() + offsetof(meta::SampleControl, record_bytes), sizeof record);
  if (taken_ != 0 && record != sizeof(meta::SampleRecord)) {
    why = "its records are of another version";
    return false;
  }
  return true;
}

bool SampleFile::load(const std::string& path, std::string& why) {
  if (!read_whole(path, bytes_, written_, why)) return false;
  if (bytes_.size() < kHead || std::memcmp(bytes_.data(), kMagic, sizeof kMagic - 1) != 0) {
    why = "not a file of samples (prof_file writes these)";
    return false;
  }
  if (std::memcmp(bytes_.data(), kFileVersion, sizeof kFileVersion - 1) != 0) {
    why = "a file of samples of another version";
    return false;
  }
  for (std::size_t at = kHead; at + kName + 8 <= bytes_.size();) {
    const std::string name(reinterpret_cast<const char*>(&bytes_[at]), kName);
    std::uint64_t length = 0;
    std::memcpy(&length, &bytes_[at + kName], sizeof length);
    at += kName + sizeof length;
    if (name == "MAPS    ") {
      maps_.assign(reinterpret_cast<const char*>(bytes_.data()) + at, bytes_.size() - at);
      program_ = first_file(maps_);
      return true;
    }
    if (length > bytes_.size() - at) break;
    const std::span<const unsigned char> content(bytes_.data() + at, length);
    if (name == "SAMPLE  ") slots_.push_back(content);
    if (name == "CONTROL " && !read_control(content, why)) return false;
    at += (length + 7) & ~std::uint64_t{7};
  }
  why = "it ends too early: the program was ended while it wrote";
  return false;
}

}  // namespace brimful::observer::stacks
