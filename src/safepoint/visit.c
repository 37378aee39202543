/* SPDX-License-Identifier: MIT
 *
 * Runs operations on threads that a full safepoint has stopped.
 */
#include "safepoint.h"

/* Chooses a random subset of the threads in one pass (selection sampling): each thread is taken
 * with the probability wanted / left of its kind. So no list is needed and none is shuffled. */
struct visit {
	struct incstack_safepoint *safepoint;
	uint32_t next; /* index in the list; a detach may move another thread to before it */
	uint32_t left[2], wanted[2]; /* threads still to come, and how many of them to take */
};

static int kind_of(const struct incstack__thread *thread)
{
	return thread->ran ? INCSTACK__RUN : INCSTACK__WAIT;
}

/* Whether the thread is about to leave the list. relaxed: GONE is final, and a thread that ran
 * has arrived before. */
static bool gone(const struct incstack__thread *thread)
{
	return atomic_load_explicit(&thread->open.word, memory_order_relaxed) & INCSTACK_WORD_GONE;
}

static void begin(struct visit *visit, uint32_t n, bool with_waiting)
{
	pthread_mutex_lock(&visit->safepoint->lock);
	for (uint32_t i = 0; i < visit->safepoint->attached; i++)
		if (!gone(visit->safepoint->threads[i]))
			visit->left[kind_of(visit->safepoint->threads[i])]++;
	pthread_mutex_unlock(&visit->safepoint->lock);
	incstack_safepoint_split(visit->left[INCSTACK__RUN],
				 with_waiting ? visit->left[INCSTACK__WAIT] : 0, n,
				 &visit->wanted[INCSTACK__RUN], &visit->wanted[INCSTACK__WAIT]);
}

static bool chosen(struct visit *visit, const struct incstack__thread *thread)
{
	int kind = kind_of(thread);
	uint32_t left = visit->left[kind]--;
	if (incstack__random_below(visit->safepoint, left) >= visit->wanted[kind])
		return false;
	visit->wanted[kind]--;
	return true;
}

static struct incstack__thread *next_chosen(struct visit *visit)
{
	struct incstack_safepoint *safepoint = visit->safepoint;
	if (visit->wanted[INCSTACK__RUN] + visit->wanted[INCSTACK__WAIT] == 0)
		return NULL;
	pthread_mutex_lock(&safepoint->lock);
	struct incstack__thread *found = NULL;
	while (!found && visit->next < safepoint->attached) {
		struct incstack__thread *thread = safepoint->threads[visit->next++];
		if (!gone(thread) && chosen(visit, thread))
			found = thread;
	}
	pthread_mutex_unlock(&safepoint->lock);
	return found;
}

int incstack_safepoint_visit(struct incstack_safepoint *safepoint, uint32_t n, uint32_t flags,
			     incstack_operation *operation, void *argument)
{
	if (!safepoint || !n || !operation || (flags & ~(uint32_t)INCSTACK_REQUEST_WAITING) ||
	    !atomic_load_explicit(&safepoint->stopped, memory_order_relaxed))
		return INCSTACK_EINVAL;
	if (incstack__forked(safepoint))
		return INCSTACK_EFORKED;
	struct visit visit = {.safepoint = safepoint};
	uint32_t numbers[2] = {0, 0};
	begin(&visit, n, flags & INCSTACK_REQUEST_WAITING);
	struct incstack__thread *thread;
	while ((thread = next_chosen(&visit)) != NULL) {
		struct incstack_ticket ticket = {.thread = &thread->open,
						 .time = incstack__now(),
						 .number = numbers[kind_of(thread)]++,
						 .on_behalf = 1};
		operation(&ticket, argument);
	}
	return (int)(numbers[INCSTACK__RUN] + numbers[INCSTACK__WAIT]);
}
