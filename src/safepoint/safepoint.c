/* SPDX-License-Identifier: MIT
 *
 * The life cycle of the safepoint coordinator.
 */
#include <stdlib.h>

#include "safepoint.h"

int incstack_safepoint_create(const struct incstack_safepoint_options *options,
			      struct incstack_safepoint **out)
{
	if (!out || (options && options->size != sizeof(*options)))
		return INCSTACK_EINVAL;
	struct incstack_safepoint *safepoint = calloc(1, sizeof(*safepoint));
	if (safepoint)
		safepoint->alive = incstack__alive_make();
	if (!safepoint || !safepoint->alive) {
		free(safepoint);
		return INCSTACK_ENOMEM;
	}
	pthread_mutex_init(&safepoint->lock, NULL);
	pthread_mutex_init(&safepoint->stop_lock, NULL);
	safepoint->random = options && options->seed ? options->seed : 1;
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++) {
		safepoint->requests[i].owner = safepoint;
		safepoint->requests[i].bit = UINT64_C(1) << i;
	}
	*out = safepoint;
	return 0;
}

void incstack__safepoint_hook(struct incstack_safepoint *safepoint, incstack__step_hook *hook,
			      void *context)
{
	safepoint->hook = hook;
	safepoint->context = context;
}

bool incstack__safepoint_in_use(struct incstack_safepoint *safepoint)
{
	pthread_mutex_lock(&safepoint->lock);
	bool busy = safepoint->attached != 0;
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++)
		busy |= !incstack__request_reusable(&safepoint->requests[i]);
	pthread_mutex_unlock(&safepoint->lock);
	return busy;
}

void incstack_safepoint_destroy(struct incstack_safepoint *safepoint)
{
	if (!safepoint)
		return;
	bool forked = incstack__forked(safepoint);
	if (!forked && incstack__safepoint_in_use(safepoint))
		return;
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++)
		free(safepoint->requests[i].threads);
	if (!forked) { /* in a child, a thread of the parent may have left them locked */
		pthread_mutex_destroy(&safepoint->lock);
		pthread_mutex_destroy(&safepoint->stop_lock);
	}
	while (safepoint->blocks) {
		struct incstack__block *block = safepoint->blocks;
		safepoint->blocks = block->next;
		free(block);
	}
	incstack__alive_free(safepoint->alive);
	free(safepoint->threads);
	free(safepoint);
}
