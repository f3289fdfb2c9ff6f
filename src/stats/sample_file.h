// SPDX-License-Identifier: MIT
//
// The samples as one file, for a tool that comes when the program is gone (docs/design/0031).
//
//   "brimful samples 1\n", padded by zeros to 32 bytes
//   sections, each: a name of 8 letters (blanks behind it) │ u64 bytes that follow (0: up to the end) │ these, padded by zeros to 8
//     CONTROL   meta::SampleControl as it is
//     SAMPLE    one record that is live or freed, with its stack copies at the offsets that it names
//     MAPS      /proc/self/maps, the last section
//
// Nothing is unwound or named here: this runs in a program that may be at its end, and must not allocate.
#pragma once

namespace brimful::stats {

// Writes the file; "%p" in the path is the process's number. 0, or the error. Any number of threads may go on meanwhile:
// a record that changes while it is read is left out. Takes no lock. errno is kept.
int write_samples(const char* path);

}  // namespace brimful::stats
