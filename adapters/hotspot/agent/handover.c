/* SPDX-License-Identifier: MIT
 *
 * The traces of threads that have ended: a list without a lock, because many may put and all are taken
 * at once.
 */
#include "handover.h"

#include <stdlib.h>
#include <string.h>

void agent_handover_open(struct agent_handover *handover, uint64_t bytes_max)
{
	*handover =
		(struct agent_handover){.bytes_max = bytes_max, .gate = PTHREAD_RWLOCK_INITIALIZER};
}

void agent_handover_enter(struct agent_handover *handover)
{
	pthread_rwlock_rdlock(&handover->gate);
}

void agent_handover_leave(struct agent_handover *handover)
{
	pthread_rwlock_unlock(&handover->gate);
}

void agent_handover_shut(struct agent_handover *handover)
{
	pthread_rwlock_wrlock(&handover->gate);
}

void agent_handover_reopen(struct agent_handover *handover)
{
	pthread_rwlock_unlock(&handover->gate);
}

uint64_t agent_handover_count(const struct incstack_jvmti_traces *traces)
{
	uint64_t count = 0;

	for (size_t i = 0; i < traces->count; i++)
		count += traces->threads[i].tree->count;
	return count;
}

uint64_t agent_tree_bytes(const struct incstack_tree *tree)
{
	return tree->count * sizeof(struct incstack_trace) +
	       tree->objects * sizeof(struct incstack_frame_object);
}

static uint64_t bytes_of(const struct incstack_jvmti_traces *traces)
{
	uint64_t bytes = sizeof(*traces);

	for (size_t i = 0; i < traces->count; i++)
		bytes += agent_tree_bytes(traces->threads[i].tree);
	return bytes;
}

bool agent_handover_put(struct agent_handover *handover, struct incstack_jvmti_traces *traces,
			const char *root)
{
	const size_t length = strlen(root) + 1;
	const uint64_t bytes = bytes_of(traces) + sizeof(struct agent_handed) + length;
	struct agent_handed *handed = NULL;

	if (atomic_fetch_add(&handover->bytes, bytes) + bytes <= handover->bytes_max)
		handed = malloc(sizeof(*handed) + length);
	if (!handed) {
		atomic_fetch_sub(&handover->bytes, bytes);
		return false;
	}
	handed->traces = traces;
	handed->bytes = bytes;
	memcpy(handed->root, root, length);
	handed->next = atomic_load(&handover->newest);
	while (!atomic_compare_exchange_weak(&handover->newest, &handed->next, handed))
		;
	return true;
}

struct agent_handed *agent_handover_take(struct agent_handover *handover)
{
	struct agent_handed *all = atomic_exchange(&handover->newest, NULL);
	uint64_t bytes = 0;

	for (const struct agent_handed *handed = all; handed; handed = handed->next)
		bytes += handed->bytes;
	atomic_fetch_sub(&handover->bytes, bytes);
	return all;
}
