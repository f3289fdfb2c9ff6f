// SPDX-License-Identifier: MIT
//
// The lock of the C library's list of streams, which its fork() takes after every prepare handler. fflush(nullptr)
// holds it while it waits for a stream, and getline() calls realloc() with its stream locked: so the order is list,
// stream, malloc, and who holds malloc's locks must not wait for the list. glibc and no other C library exports the
// lock (libio's _IO_list_lock, since 2.2.5); it is recursive, so fork() takes it once more without waiting.
#pragma once

namespace brimful::os {

// Takes it, if fork() is going to: when the process has more than one thread. true when it is now ours, to be given back
// by one of the two below. The caller holds no lock of the library.
bool lock_stream_list();

void unlock_stream_list();

// In the child of a fork, which has one thread: nobody holds it.
void reset_stream_list();

}  // namespace brimful::os
