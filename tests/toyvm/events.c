/* SPDX-License-Identifier: MIT
 *
 * What happens at a poll: samples, and everything that may happen to frames
 * between a sample and its completion, at random.
 */
#include "vm.h"

/* A ticket was drawn: by the fiber's own thread, or on its behalf. */
static void ticket(const struct incstack_ticket *ticket, void *argument)
{
	struct thread *t = ticket->thread->context;
	struct fiber *own = fiber_looked_at;
	uint64_t random = ticket->time;
	(void)argument;
	if (!t->fiber || t->fiber->pc == stubs.base)
		return;
	fiber_looked_at = t->fiber;
	incstack_stack_own(t->fiber->stack);
	oracle_sample(t->fiber, &random);
	fiber_looked_at = own;
}

/* Asks for samples of some threads, this one among them. */
static void request(struct fiber *f)
{
	struct incstack_request *r;
	struct incstack_request_options options = {.size = sizeof(options),
						   .n = 1 + random_below(&f->thread->random, 2),
						   .flags = INCSTACK_REQUEST_WAITING,
						   .operation = ticket};
	if (!incstack_request_start(f->vm->safepoint, &options, &r))
		incstack_request_release(r);
}

static void one(struct fiber *f)
{
	uint64_t *random = &f->thread->random;
	uint32_t what = random_below(random, 256);
	if (what < 140)
		oracle_sample(f, random);
	else if (what < 156)
		oracle_retrieve(f);
	else if (what < 200)
		deopt_random(f);
	else if (what < 204)
		fiber_move(f, f->high - f->limit);
	else if (what < 206)
		request(f);
	else if (what < 207)
		heap_collect(f);
}

struct fiber *poll(struct fiber *f, bool yield)
{
	struct thread *t = f->thread;
	incstack_poll(t->safepoint);
	incstack_stack_own(f->stack);
	if (f->vm->schedule.sampling) {
		f->ticks = INT64_MAX;
		return yield ? fiber_yield(f) : f;
	}
	f->ticks = random_below(&t->random, f->vm->schedule.ticks + 1);
	uint32_t count = 1 + random_below(&t->random, 3);
	for (uint32_t i = 0; i < count; i++)
		one(f);
	if (yield || random_below(&t->random, 16) == 0)
		return fiber_yield(f);
	return f;
}
