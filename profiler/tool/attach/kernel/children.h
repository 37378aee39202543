/* SPDX-License-Identifier: MIT
 *
 * Children that were forked with the breakpoints of their parent.
 */
#ifndef INCSTACK_TOOL_ATTACH_CHILDREN_H
#define INCSTACK_TOOL_ATTACH_CHILDREN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "program.h"

struct tool_attach_children {
	pid_t pid; /* of the parent */
	const struct tool_attach_probe *probes;
	size_t count;
	bool has_new;    /* a child was forked since the last look */
	bool is_running; /* the thread */
	atomic_bool is_done;
	pthread_t thread;
};

/* Frees new children from the breakpoints, in a thread. Returns at once. */
void tool_attach_children_free(struct tool_attach_children *children);
/* Waits for the thread. */
void tool_attach_children_end(struct tool_attach_children *children);

#endif
