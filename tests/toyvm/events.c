/* SPDX-License-Identifier: MIT
 *
 * Makes things happen at polls, at random: samples, and everything that may happen to frames
 * between a sample and its completion.
 */
#include "instrument.h"
#include "vm.h"

/* Called for each ticket that was drawn, by the fiber's own thread or on its behalf. */
static void ticket(const struct incstack_ticket *ticket, void *argument)
{
	struct thread *t = ticket->thread->context;
	struct fiber *own = fiber_looked_at;
	uint64_t random = ticket->time;
	(void)argument;
	if (!t->fiber || t->fiber->pc == stubs.base)
		return;
	fiber_looked_at = t->fiber;
	incstack_stack_set_owner(t->fiber->stack);
	oracle_sample(t->fiber, &random);
	fiber_looked_at = own;
}

/* Requests samples of some threads. This thread may be among them. */
static void request(struct fiber *f)
{
	struct incstack_request *r;
	struct incstack_request_options options = {.size = sizeof(options),
						   .n = 1 + random_below(&f->thread->random, 2),
						   .flags = INCSTACK_REQUEST_WAITING,
						   .operation = ticket};
	if (incstack_request_start(f->vm->safepoint, &options, &r))
		return;
	pages_arm(f->vm);
	incstack_request_release(r);
}

/* Counts the return slots that deoptimization patched before the library did. */
static void count_deopt_first(struct fiber *f)
{
	for (int i = 0; i < f->lazy_count; i++) {
		struct lazy *l = &f->lazy[i];
		if (!l->barrier_first && !l->counted && has_barrier((uintptr_t *)l->slot)) {
			l->counted = true;
			COUNT(deopt_first);
		}
	}
}

static void move(struct fiber *f)
{
	if (f->linked)
		linked_move(f);
	else
		fiber_move(f, f->high - f->limit);
}

static void one(struct fiber *f)
{
	uint64_t *random = &f->thread->random;
	uint32_t what = random_below(random, 256);
	if (what < 132)
		oracle_sample(f, random);
	else if (what < 148)
		oracle_retrieve(f);
	else if (what < 200)
		deopt_random(f);
	else if (what < 204)
		move(f);
	else if (what < 206)
		request(f);
	else if (what < 207)
		heap_collect(f);
	else if (what < 208)
		instrument_random(f);
}

static void all(struct fiber *f)
{
	oracle_sample(f, &f->thread->random);
	deopt_random(f);
	move(f);
	request(f);
	heap_collect(f);
	deopt_random(f);
	oracle_sample(f, &f->thread->random);
	if (random_below(&f->thread->random, 4) == 0)
		oracle_retrieve(f);
}

static void some(struct fiber *f)
{
	for (uint32_t i = 1 + random_below(&f->thread->random, 3); i > 0; i--)
		one(f);
}

struct fiber *poll(struct fiber *f, bool yield)
{
	struct thread *t = f->thread;
	const struct schedule *s = &f->vm->schedule;
	incstack_thread_poll(t->safepoint);
	if (!BUG(BUG_OLD_OWNER))
		incstack_stack_set_owner(f->stack);
	signals_drain(f);
	if (s->sampling) {
		if (f->ticks < 0)
			f->ticks = INT64_MAX;
		if (s->sampling->poll)
			s->sampling->poll(f);
		return yield ? fiber_yield(f) : f;
	}
	f->ticks = s->hostile ? 0 : random_below(&t->random, s->ticks + 1);
	if (s->hostile)
		all(f);
	else
		some(f);
	count_deopt_first(f);
	(void)deopt_outdated(f, true);
	signals_go_on(f);
	if (yield || s->hostile || random_below(&t->random, 6) == 0)
		return fiber_yield(f);
	return f;
}
