/* SPDX-License-Identifier: MIT
 *
 * The library as jemalloc's unwinder (libincstack_jemalloc.so). A program that is linked with it calls
 * incstack_jemalloc_start once. A program that it is preloaded into calls nothing.
 */
#ifndef INCSTACK_JEMALLOC_H
#define INCSTACK_JEMALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/version.h>

INCSTACK_BEGIN_C

#define INCSTACK_JEMALLOC_API __attribute__((visibility("default")))

/* jemalloc's mallctl. A jemalloc with a prefix has it under another name, such as _rjem_mallctl. */
typedef int incstack_jemalloc_control(const char *name, void *old, size_t *old_bytes, void *fresh,
				      size_t fresh_bytes);

/* Makes the library the unwinder of the jemalloc that `control` belongs to; null: of the one whose mallctl
 * the dynamic linker finds. Returns null, or a sentence that says why not and what to do. Then jemalloc
 * keeps its own unwinder. A second call returns what the first did, unless the first was refused.
 * Thread: any, one at a time. Signal: no. Allocates: may. Blocks: in the main thread it reads a file
 * of the kernel. */
INCSTACK_JEMALLOC_API const char *incstack_jemalloc_start(incstack_jemalloc_control *control);

/* What the unwinder has done so far. */
struct incstack_jemalloc_counts {
	uint64_t stacks; /* how many jemalloc has got */
	uint64_t cut;    /* how many of them end before the outermost frame, because a frame has no
	                  * unwind rule; not those that are longer than jemalloc keeps */
};

/* Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_JEMALLOC_API struct incstack_jemalloc_counts incstack_jemalloc_count(void);

INCSTACK_END_C

#endif
