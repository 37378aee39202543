/* SPDX-License-Identifier: MIT
 *
 * A stack of a chosen depth whose youngest frames really return and are really
 * called again between two samples. The same source is compiled with and without
 * frame pointers.
 */
#ifndef INCSTACK_BENCH_WORKLOAD_H
#define INCSTACK_BENCH_WORKLOAD_H

#include <stdint.h>

struct workload {
	unsigned depth;  /* frames between the base and the sample */
	unsigned popped; /* of these return between two samples, at most depth */
	/* At the top of the stack, once a turn; its caller is the top frame. */
	void (*sample)(struct workload *);
	/* When `left` turns were made: chooses what comes next. */
	void (*boundary)(struct workload *);
	uint64_t left;
	void *context;

	/* Of the workload itself. */
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
