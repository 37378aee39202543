/* SPDX-License-Identifier: MIT
 *
 * Runs operations on threads that a full safepoint has stopped.
 */
#include "safepoint.h"

/* Chooses a random subset of the threads in one pass (selection sampling): each thread is taken
 * with the probability wanted / left of its kind. So no list is made or shuffled. */
struct pass {
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

static void begin(struct pass *pass, uint32_t n, bool with_waiting)
{
	pthread_mutex_lock(&pass->safepoint->lock);
	for (uint32_t i = 0; i < pass->safepoint->attached; i++)
		if (!gone(pass->safepoint->threads[i]))
			pass->left[kind_of(pass->safepoint->threads[i])]++;
	pthread_mutex_unlock(&pass->safepoint->lock);
	incstack__split(pass->left[INCSTACK__RUN], with_waiting ? pass->left[INCSTACK__WAIT] : 0, n,
			&pass->wanted[INCSTACK__RUN], &pass->wanted[INCSTACK__WAIT]);
}

static bool chosen(struct pass *pass, const struct incstack__thread *thread)
{
	int kind = kind_of(thread);
	uint32_t left = pass->left[kind]--;
	if (incstack__random_below(pass->safepoint, left) >= pass->wanted[kind])
		return false;
	pass->wanted[kind]--;
	return true;
}

static struct incstack__thread *next_chosen(struct pass *pass)
{
	struct incstack_safepoint *safepoint = pass->safepoint;
	if (pass->wanted[INCSTACK__RUN] + pass->wanted[INCSTACK__WAIT] == 0)
		return NULL;
	pthread_mutex_lock(&safepoint->lock);
	struct incstack__thread *found = NULL;
	while (!found && pass->next < safepoint->attached) {
		struct incstack__thread *thread = safepoint->threads[pass->next++];
		if (!gone(thread) && chosen(pass, thread))
			found = thread;
	}
	pthread_mutex_unlock(&safepoint->lock);
	return found;
}

int incstack__safepoint_run_operation(struct incstack_safepoint *safepoint, uint32_t n,
				      uint32_t flags, incstack_operation *operation, void *argument)
{
	if (!safepoint || !n || !operation || (flags & ~(uint32_t)INCSTACK_REQUEST_WAITING))
		return INCSTACK_EINVAL;
	if (incstack__forked(safepoint))
		return INCSTACK_EFORKED;
	int error = incstack__check_stopped(safepoint);
	if (error)
		return error;
	struct pass pass = {.safepoint = safepoint};
	uint32_t numbers[2] = {0, 0};
	begin(&pass, n, flags & INCSTACK_REQUEST_WAITING);
	struct incstack__thread *thread;
	while ((thread = next_chosen(&pass)) != NULL) {
		struct incstack_ticket ticket = {.thread = &thread->open,
						 .time = incstack__now(),
						 .number = numbers[kind_of(thread)]++,
						 .on_behalf = 1};
		operation(&ticket, argument);
	}
	return (int)(numbers[INCSTACK__RUN] + numbers[INCSTACK__WAIT]);
}
