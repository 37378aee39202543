/* SPDX-License-Identifier: MIT
 *
 * What the recorder asks of the kernel and of /proc. Nothing here knows of a recording.
 */
#ifndef INCSTACK_RECORDER_SYSTEM_H
#define INCSTACK_RECORDER_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* memory.c */
void *incstack__record_map(size_t bytes);
/* Enlarges memory, which may move. Null: there is none, and the memory stays as it was. */
void *incstack__record_remap(void *memory, size_t bytes, size_t more);
void incstack__record_unmap(void *memory, size_t bytes); /* `memory` may be null */
/* Replaces shared memory by a private copy. Without memory for the copy, nothing changes. */
void incstack__record_make_private(void *memory, size_t bytes);

/* clock.c: what clock_gettime and clock_nanosleep do; both preserve errno. */
void incstack__clock_find(void); /* called first */
int incstack__clock(clockid_t clock, struct timespec *now);
void incstack__nap(long ns);

/* small_file.c: the bytes that could be read. The text ends with a zero. */
size_t incstack__record_read_small(const char *path, char *text, size_t size);

/* path.c: the absolute path of the file that is mapped at the address. Returns false if it is
 * not known. */
bool incstack__record_path(uint64_t address, char *path, size_t size);
/* Removes the suffix that the kernel appends to the path of a file that was removed or replaced. */
void incstack__record_cut_deleted(char *path);

/* await.c */
/* Waits until the thread has returned from the handler of the signal, and the signal is no longer
 * pending. Soon even the system call that returns from a handler may be forbidden. Each of the
 * steps takes at least 50 us. */
void incstack__record_await_thread(pid_t tid, int signal, int steps);

#endif
