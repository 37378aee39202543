/* SPDX-License-Identifier: MIT
 *
 * Fibers: their stacks, which grow by being copied, and the threads between which they migrate.
 * Also one run of a program, from start to end.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "instrument.h"
#include "vm.h"

static void set_memory(struct fiber *f, char *memory, uintptr_t usable)
{
	f->low = (uintptr_t)memory;
	f->limit = f->low + STACK_RESERVE;
	f->high = f->limit + usable;
}

bool fiber_has_barrier(struct fiber *f)
{
	struct incstack_stats s = {.size = sizeof(s)};
	incstack_stack_stats(f->stack, &s);
	return s.planted > s.returns + s.unwound + s.stale;
}

/* Copies the stack to new memory with `usable` bytes. */
void fiber_move(struct fiber *f, uintptr_t usable)
{
	struct fiber old = *f;
	if (fiber_has_barrier(f))
		COUNT(moved);
	set_memory(f, malloc(STACK_RESERVE + usable), usable);
	uintptr_t delta = f->high - old.high;
	if (BUG(SLIP_STACK_FREED))
		free((void *)old.low);
	memcpy((void *)(old.sp + delta), (const void *)old.sp, old.high - old.sp);
	f->sp += delta;
	memcheck_new_stack(f->low, f->sp);
	for (uintptr_t *fp = &f->fp; *fp; fp = (uintptr_t *)*fp)
		*fp += delta;
	for (int i = 0; i < f->lazy_count; i++)
		f->lazy[i].slot += delta;
	if (BUG(BUG_STACK_MOVE_UNTOLD))
		return; /* the old stack stays, because the library will write to it */
	incstack_stack_moved(f->stack, f->low, f->high);
	if (!BUG(SLIP_STACK_FREED))
		free((void *)old.low);
}

/* Makes sure that `bytes` fit below sp. */
bool fiber_grow(struct fiber *f, uintptr_t bytes)
{
	uintptr_t usable = f->high - f->limit;
	if (f->sp - bytes >= f->limit)
		return true;
	while (usable < f->high - f->sp + bytes)
		usable *= 2;
	if (usable > STACK_LAST)
		return false;
	fiber_move(f, usable);
	return true;
}

static void enqueue(struct vm *vm, struct fiber *f)
{
	f->next = NULL;
	*vm->queue_end = f;
	vm->queue_end = &f->next;
	pthread_cond_signal(&vm->changed);
}

static struct fiber *dequeue(struct vm *vm)
{
	struct fiber *f = vm->queue;
	if (f && !(vm->queue = f->next))
		vm->queue_end = &vm->queue;
	return f;
}

static bool new_stack(struct fiber *f)
{
	static struct incstack_stack *one;
	uintptr_t low = f->low, high = f->high;
	if (f->linked)
		return !incstack_stack_create_embedder(f->vm->runtime, &linked_walker, f,
						       &f->stack);
	if (BUG(BUG_ONE_STACK)) {
		low = 8;
		high = UINTPTR_MAX / 2 + 1;
		if (one)
			f->stack = one;
	}
	if (!f->stack && incstack_stack_create(f->vm->runtime, low, high, &f->stack))
		return false;
	one = f->stack;
	return true;
}

static uint32_t fibers_number(struct vm *vm)
{
	pthread_mutex_lock(&vm->lock);
	uint32_t number = vm->spawned++;
	pthread_mutex_unlock(&vm->lock);
	return number;
}

struct fiber *fiber_spawn(struct vm *vm, struct method *m, value argument)
{
	struct fiber *f = calloc(1, sizeof(*f));
	f->vm = vm;
	set_memory(f, malloc(STACK_RESERVE + STACK_FIRST), STACK_FIRST);
	f->shadow = f->shadow_base =
		mmap(NULL, SHADOW_MAX * sizeof(uint64_t), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	f->linked = fibers_number(vm) % 8 < vm->schedule.linked;
	if (f->shadow == MAP_FAILED || !new_stack(f))
		abort();
	if (vm->schedule.signals && incstack_stack_queue_resize(f->stack, 64))
		abort();
	f->shadow[0] = 0; /* the base: method 0, bci 0 */
	f->pc = stubs.base;
	f->sp = f->high - 16;
	memcheck_new_stack(f->low, f->sp);
	*(uintptr_t *)f->sp = stubs.base;
	f->resume = stubs.start;
	if (f->linked)
		linked_begin(f);
	f->callee = m;
	f->args[0] = argument;
	f->flags = 0x202; /* interrupts are enabled, nothing else */
	f->fuel = vm->schedule.fuel ? vm->schedule.fuel : 4000;
	f->oracle = oracle_new();
	instrument_fiber(f);
	pthread_mutex_lock(&vm->lock);
	f->all = vm->fibers;
	vm->fibers = f;
	vm->live++;
	enqueue(vm, f);
	pthread_mutex_unlock(&vm->lock);
	return f;
}

static void fiber_free(struct fiber *f)
{
	struct vm *vm = f->vm;
	pthread_mutex_lock(&vm->lock);
	struct fiber **at = &vm->fibers;
	while (*at != f)
		at = &(*at)->all;
	*at = f->all;
	vm->live--;
	pthread_cond_broadcast(&vm->changed);
	pthread_mutex_unlock(&vm->lock);
	if (!BUG(BUG_ONE_STACK) || f->linked)
		incstack_stack_destroy(f->stack);
	oracle_free(f->oracle);
	munmap(f->shadow_base, SHADOW_MAX * sizeof(uint64_t));
	free((void *)f->low);
	free(f->lazy);
	free(f);
}

static void run_on(struct thread *t, struct fiber *f)
{
	if (f->thread && f->thread != t && fiber_has_barrier(f))
		COUNT(threads);
	f->thread = t;
	f->word = &t->safepoint->word;
	f->page = t->page;
	t->fiber = fiber_looked_at = f;
	if (!BUG(BUG_OLD_OWNER))
		incstack_stack_set_owner(f->stack);
	instrument_mounted(f, true);
	(void)deopt_outdated(f, true);
}

/* Lets another fiber that waits run on the thread, if there is one. */
struct fiber *fiber_yield(struct fiber *f)
{
	struct thread *t = f->thread;
	struct vm *vm = t->vm;
	if (f->pinned)
		return f;
	pthread_mutex_lock(&vm->lock);
	struct fiber *next = dequeue(vm);
	if (next) {
		next->c_sp = f->c_sp;
		if (fiber_has_barrier(f))
			COUNT(fibers);
		instrument_mounted(f, false);
		enqueue(vm, f);
	}
	pthread_mutex_unlock(&vm->lock);
	if (!next)
		return f;
	run_on(t, next);
	return next;
}

struct fiber *toy_fiber_end(struct fiber *f)
{
	f->pc = stubs.base;
	f->args[0] = f->args[1] = f->args[2] = f->args[3] = 0;
	signals_drain(f);
	oracle_finish(f);
	instrument_fiber_end(f);
	f->thread->dead = f;
	f->resume = stubs.leave;
	return f;
}

static struct fiber *wait_for_work(struct thread *t)
{
	struct vm *vm = t->vm;
	t->fiber = NULL;
	incstack_thread_wait_begin(t->safepoint);
	pthread_mutex_lock(&vm->lock);
	struct fiber *f;
	while (!(f = dequeue(vm)) && vm->live)
		pthread_cond_wait(&vm->changed, &vm->lock);
	pthread_mutex_unlock(&vm->lock);
	incstack_thread_wait_end(t->safepoint);
	return f;
}

static void *thread_main(void *argument)
{
	struct thread *t = argument;
	struct fiber *f;
	incstack_safepoint_attach(t->vm->safepoint, &t->safepoint);
	t->safepoint->context = t;
	signals_begin(t);
	while ((f = wait_for_work(t))) {
		run_on(t, f);
		f->c_sp = 0;
		stubs.enter(f);
		fiber_free(t->dead);
	}
	signals_end(t);
	incstack_thread_detach(t->safepoint);
	return NULL;
}

static void open_vm(struct vm *vm)
{
	struct incstack_options options = {.size = sizeof(options),
					   .embedder = &embedder,
					   .context = vm,
					   .mode = (uint32_t)vm->schedule.mode,
					   .distance = vm->schedule.distance,
					   .stack_bytes = vm->schedule.stack_bytes,
					   .chunk_bytes = (uint32_t)vm->schedule.stack_bytes / 4,
					   .thunk_limit = vm->schedule.thunk_limit};
	if (incstack_runtime_create(&options, &vm->runtime) ||
	    incstack_safepoint_create(NULL, &vm->safepoint))
		abort();
	vm->queue_end = &vm->queue;
	pthread_mutex_init(&vm->lock, NULL);
	pthread_mutex_init(&vm->compile_lock, NULL);
	pthread_mutex_init(&vm->page_lock, NULL);
	pthread_mutex_init(&vm->heap_lock, NULL);
	pthread_cond_init(&vm->changed, NULL);
	heap_open(vm);
	if (vm->schedule.page)
		pages_open(vm);
	for (int i = 0; i < vm->program->method_count; i++)
		method_set_interpreted(vm->program->methods[i]);
}

static void close_vm(struct vm *vm)
{
	incstack_safepoint_destroy(vm->safepoint);
	incstack_runtime_destroy(vm->runtime);
	heap_close(vm);
	if (vm->schedule.page)
		pages_close();
	pthread_cond_destroy(&vm->changed);
	pthread_mutex_destroy(&vm->heap_lock);
	pthread_mutex_destroy(&vm->compile_lock);
	pthread_mutex_destroy(&vm->page_lock);
	pthread_mutex_destroy(&vm->lock);
	code_reset();
}

/* Runs main(n) and all fibers that it starts. Returns the sum of the numbers printed. */
uint64_t vm_run(struct program *p, const struct schedule *s, uint64_t seed, int64_t n, bool print)
{
	struct thread threads[THREADS_MAX] = {0};
	struct vm vm = {.program = p, .schedule = *s, .threads = threads, .print = print};
	if (s->signals)
		signals_open();
	code_open();
	open_vm(&vm);
	instrument_open(&vm, seed);
	fiber_spawn(&vm, p->main, value_of(n));
	if (s->sampling)
		s->sampling->begin(&vm);
	for (int i = 0; i < s->threads; i++) {
		threads[i].vm = &vm;
		threads[i].random = seed * 31 + (uint64_t)i;
		if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]))
			abort();
	}
	for (int i = 0; i < s->threads; i++)
		pthread_join(threads[i].id, NULL);
	if (s->sampling)
		s->sampling->end(&vm);
	instrument_close(&vm);
	close_vm(&vm);
	return vm.checksum;
}
