/* SPDX-License-Identifier: MIT
 *
 * A copy of the trees of threads, summed.
 */
#ifndef INCSTACK__INSTRUMENT_COPY_H
#define INCSTACK__INSTRUMENT_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

struct incstack_meter_method;
struct incstack_meter_thread;

/* A context; its members are those of struct node. */
struct copied {
	struct incstack_meter_method *method;
	uint64_t thread;
	uint32_t parent; /* NONE: a root */
	uint64_t timed, ticks, inside_timed, inside_counted, counted, waits;
	uint64_t sampled_ns, by_samples_ns, given_ns;
};

struct copy {
	struct copied *nodes; /* parents before their callees */
	size_t count, room;
	struct incstack__table table;
};

int incstack__copy_init(struct copy *copy);
void incstack__copy_free(struct copy *copy);

/* Adds the tree of a thread, which may run, as that of thread `id`. Errors: ENOMEM: the contexts before it are
 * added; *lost is how many calls are not. */
int incstack__copy_add_thread(struct copy *copy, const struct incstack_meter_thread *thread,
			      uint64_t id, uint64_t *lost);
/* Adds another copy. */
int incstack__copy_add(struct copy *copy, const struct copy *from);

#endif
