/* SPDX-License-Identifier: MIT
 *
 * A stack of a chosen depth. Its youngest frames really return and are really called again between
 * two samples. The same source is compiled with and without frame pointers.
 */
#ifndef INCSTACK_BENCH_WORKLOAD_H
#define INCSTACK_BENCH_WORKLOAD_H

#include <stdint.h>

struct workload {
	unsigned depth;  /* frames between the base and the sample */
	unsigned popped; /* how many of these return between two samples; at most depth */
	/* Called at the top of the stack, once in each turn. Its caller is the top frame. */
	void (*sample)(struct workload *);
	/* Called after `left` turns: chooses what comes next. */
	void (*boundary)(struct workload *);
	uint64_t left;
	void *context;

	/* The state of the workload itself. */
	unsigned turn;
	unsigned floor; /* the frame that runs again and calls anew */
	int done;
	uintptr_t base; /* the frame address of its oldest function */
};

typedef void workload_function(struct workload *w);

/* Run until workload_stop is called from a boundary. */
workload_function workload_run_fp, workload_run_nofp;

static inline void workload_stop(struct workload *w)
{
	w->done = 1;
	w->floor = 0;
}

#endif
