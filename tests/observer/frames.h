// SPDX-License-Identifier: MIT
//
// The functions of frames.S, and this program as a process whose stacks are unwound.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "stacks/modules.h"

extern "C" {
extern const char frame_leaf[], frame_pushed[], frame_first[], frame_signal[], frame_in_register[], frame_by_word[],
    frame_rules[], frame_stays[], frame_by_lost_register[], frame_other_column[], frame_bare[], frame_bare_called[];
extern const std::uint64_t frame_returns[];  // behind each call of frame_calls; 0 ends them
}

namespace brimful::observer::stacks {

inline std::uint64_t address_of(const char* function) { return reinterpret_cast<std::uint64_t>(function); }

// The code of this process.
class Frames : public ::testing::Test {
 protected:
  void SetUp() override {
    // Of this program alone: each module takes time to read.
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::ifstream file("/proc/self/maps");
    std::string maps;
    for (std::string line; std::getline(file, line);) {
      if (line.find(program) != std::string::npos) maps += line + "\n";
    }
    modules_.update(maps);
  }

  Place place_of(std::uint64_t address) const {
    Place place = {kNoFile, 0};
    EXPECT_TRUE(modules_.find(address, place));
    EXPECT_NE(modules_.module(place.module), nullptr);
    return place;
  }

  Modules modules_{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
                   [](std::uint64_t address, void* into, std::size_t bytes) {
                     std::memcpy(into, reinterpret_cast<const void*>(address), bytes);
                     return true;
                   },
                   0};
};

}  // namespace brimful::observer::stacks
