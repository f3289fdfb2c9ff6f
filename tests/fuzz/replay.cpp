// SPDX-License-Identifier: MIT
//
// main() of a target in builds that have no fuzzer: runs it on each file that is named, and on all files of each folder. So
// the corpora are tests of every build, and coverage is counted without what a fuzzer adds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* count, char*** arguments);

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s FILE|FOLDER...\n", arguments[0]);
    return 2;
  }
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&count, &arguments);
  std::vector<std::filesystem::path> paths;
  for (int n = 1; n < count; ++n) {
    if (!std::filesystem::exists(arguments[n])) {
      std::fprintf(stderr, "%s: there is no such file\n", arguments[n]);
      return 2;
    }
    if (!std::filesystem::is_directory(arguments[n])) paths.emplace_back(arguments[n]);
    if (!std::filesystem::is_directory(arguments[n])) continue;
    for (const auto& entry : std::filesystem::directory_iterator(arguments[n])) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (std::getenv("BRIMFUL_FUZZ_VERBOSE") != nullptr) std::fprintf(stderr, "%s\n", path.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", paths.size());
  return paths.empty() ? 2 : 0;
}
