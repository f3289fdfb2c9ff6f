// SPDX-License-Identifier: MIT
#include "corpus.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace zcache {
namespace {

namespace fs = std::filesystem;

struct File {
  explicit File(const std::string& path) : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor;
};

}  // namespace

Corpus::Corpus(const std::vector<std::string>& folders, std::size_t bytes, std::size_t piece)
    : piece_(piece), bytes_(bytes, Backing::kWhenTouched), starts_(bytes + 1, Backing::kWhenTouched) {
  Progress progress("reading files", bytes);
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (!fs::is_directory(folders[i])) throw std::runtime_error(folders[i] + " is not a folder");
    read_folder(folders[i], used_ + (bytes - used_) / (folders.size() - i), progress);
  }
  if (pieces_ == 0) throw std::runtime_error("no file that can be read was found");
}

// Files before folders, both in order of names, so that two runs read the same.
void Corpus::read_folder(const std::string& folder, std::size_t end, Progress& progress) {
  std::vector<std::string> files;
  std::vector<std::string> inner;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), none; !error && i != none; i.increment(error)) {
    const fs::file_type type = i->symlink_status(error).type();
    if (type == fs::file_type::regular) files.push_back(i->path());
    if (type == fs::file_type::directory) inner.push_back(i->path());
  }
  if (error) ++unreadable_;
  std::sort(files.begin(), files.end());
  std::sort(inner.begin(), inner.end());
  for (const std::string& path : files) read_file(path, end, progress);
  for (const std::string& path : inner) {
    if (used_ < end) read_folder(path, end, progress);
  }
}

void Corpus::read_file(const std::string& path, std::size_t end, Progress& progress) {
  const std::size_t began = used_;
  const File file(path);
  ssize_t got = file.descriptor < 0 ? -1 : 0;
  while (got >= 0 && used_ < end) {
    progress.tick(used_);
    got = read(file.descriptor, bytes_.data() + used_, std::min(end - used_, std::size_t{1} << 20));
    if (got == 0) break;
    if (got > 0) used_ += static_cast<std::size_t>(got);
  }
  if (got < 0) ++unreadable_;
  if (used_ == began) return;
  ++files_;
  for (std::size_t at = began; at < used_; at += piece_) starts_[pieces_++] = at;
  starts_[pieces_] = used_;
}

}  // namespace zcache
