// SPDX-License-Identifier: MIT
//
// Standard error as the program got it, for what is written when the program ends. By then descriptor 2 may be closed
// (cat, sort and their kind close it in an exit handler), or lead to a file of the program's own that must not be written
// into. So a duplicate is taken at the start, far above the numbers that programs expect to get, closed on exec; and
// before it is used, its file is compared with the one it was taken for, because some programs close every descriptor
// and open others.
#pragma once

#include <cstddef>

namespace brimful::os {

// Takes the duplicate. Once, before the program can have closed or replaced descriptor 2. Without stderr: nothing.
void keep_stderr();

// A descriptor that leads where stderr led at the start; -1: the program has closed every way there.
int kept_stderr();

// Writes the text where stderr led at the start, in one write(2) as far as the system takes it in one. Nothing happens
// when the program has closed every way there. A reader that is gone does not end the process by SIGPIPE. errno is kept.
void write_to_kept_stderr(const char* text, std::size_t bytes);

}  // namespace brimful::os
