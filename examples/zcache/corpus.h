// SPDX-License-Identifier: MIT
//
// The files of some folders, read into memory and cut into pieces: the values to be cached, and what they are checked
// against. In memory, so that no disk is in the times and no file changes under the check; in tables of its own, so that
// malloc's heap is as good as new when the first value comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "progress.h"
#include "table.h"
#include "value_memory.h"

namespace zcache {

class Corpus {
 public:
  // At most `bytes` bytes in pieces of at most `piece` bytes, an equal share from each folder, in order of names. What cannot
  // be read is left out and counted. Throws std::runtime_error when a folder is none or nothing was read.
  Corpus(const std::vector<std::string>& folders, std::size_t bytes, std::size_t piece);

  [[nodiscard]] std::size_t pieces() const { return pieces_; }
  [[nodiscard]] std::size_t bytes() const { return used_; }
  [[nodiscard]] std::size_t files() const { return files_; }
  [[nodiscard]] std::size_t unreadable() const { return unreadable_; }

  [[nodiscard]] Bytes operator[](std::size_t i) const {
    return {bytes_.data() + starts_[i], starts_[i + 1] - starts_[i]};
  }

 private:
  void read_folder(const std::string& folder, std::size_t end, Progress& progress);
  void read_file(const std::string& path, std::size_t end, Progress& progress);

  std::size_t piece_;
  Table<std::byte> bytes_;
  Table<std::size_t> starts_;  // of each piece in bytes_; one more, where the last one ends
  std::size_t used_ = 0;
  std::size_t pieces_ = 0;
  std::size_t files_ = 0;
  std::size_t unreadable_ = 0;
};

}  // namespace zcache
