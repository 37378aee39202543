/* SPDX-License-Identifier: MIT
 *
 * Instruments methods at run time, as an embedder of incstack/instrument.h. A method gets a second version of its
 * bytecode that reports its calls. While all threads are stopped, the version takes the place of the method.
 * Activations of the other version end as they began. Compiled code that has inlined the other version is left at
 * the next poll.
 */
#include <stdlib.h>
#include <string.h>

#include "instrument.h"

/* The classes of the mirrors: those of the program follow. */
enum { OBJECT = 1, FUNCTIONS, CLASS_FIRST };
enum {
	NAME_FUNCTION = 1000
}; /* the name of a function is its number and this; others are selectors */

struct instrumentation {
	uint64_t random; /* used while all threads are stopped */
	bool keeps_roots, was_removed;
	struct incstack_subgraph *subgraph;
	struct incstack_meter *meter;
	struct calls *calls;
	struct method *plain[METHODS_MAX], *instrumented[METHODS_MAX];
	struct incstack_meter_method *meters[METHODS_MAX];
	_Atomic bool is_root[METHODS_MAX];
	uint64_t class_of[METHODS_MAX], name_of[METHODS_MAX];
};

static void check(int error)
{
	if (error < 0)
		abort();
}

static uintptr_t frame_id(const struct fiber *f)
{
	return ~(uintptr_t)f->shadow; /* descends, as the addresses of frames do */
}

/* ---- versions of methods --------------------------------------------------------------------- */

/* Where the instructions of a method are in its instrumented version: a jump to a return goes to the report. */
static int32_t place_all(const struct method *m, int32_t *places)
{
	int32_t at = 1;
	for (int32_t i = 0; i < m->count; i++) {
		places[i] = at;
		at += 1 + (m->body[i].op == OP_RET);
	}
	places[m->count] = at;
	return at;
}

static void write_body(const struct method *m, struct method *to, const int32_t *places)
{
	to->body[0] = (struct instruction){.op = OP_ENTER};
	for (int32_t i = 0; i < m->count; i++) {
		struct instruction ins = m->body[i];
		int32_t at = places[i];
		if (ins.op == OP_JMP || ins.op == OP_JZ || ins.op == OP_LOOP)
			ins.a = places[ins.a];
		if (ins.op == OP_RET)
			to->body[at++] = (struct instruction){.op = OP_EXIT, .depth = ins.depth};
		to->body[at] = ins;
	}
}

static struct method *instrumented_version(const struct instrumentation *in, const struct method *m)
{
	int32_t *places = calloc((size_t)m->count + 1, sizeof(*places));
	struct method *to = malloc(sizeof(*to));
	*to = *m;
	to->count = place_all(m, places);
	to->body = calloc((size_t)to->count, sizeof(*to->body));
	to->handlers = calloc((size_t)m->handler_count + 1, sizeof(*to->handlers));
	to->meter = in->meters[m->id];
	atomic_init(&to->frames, 0);
	atomic_init(&to->events, 0);
	to->frozen = 0;
	write_body(m, to, places);
	for (int32_t i = 0; i < m->handler_count; i++) {
		const struct handler *h = &m->handlers[i];
		to->handlers[i] = (struct handler){places[h->from], places[h->to],
						   places[h->target], h->local};
	}
	free(places);
	return to;
}

static void put_version(struct vm *vm, uint32_t id, bool on)
{
	struct instrumentation *in = vm->instrumentation;
	struct method *from, *to;
	if (on && !in->instrumented[id])
		in->instrumented[id] = instrumented_version(in, in->plain[id]);
	if (on)
		check(incstack_meter_method_set_mode(
			in->meters[id], vm->schedule.direct ? vm->schedule.meter_mode
							    : random_below(&in->random, 2)));
	from = vm->program->methods[id];
	to = on ? in->instrumented[id] : in->plain[id];
	method_set_interpreted(from);
	from->frozen = atomic_load(&from->frames);
	if (atomic_load(&to->frames) != to->frozen)
		COUNT(mismatches);
	vm->program->methods[id] = to;
}

/* Makes the changes that are due. Other code may have inlined the versions, or calls them directly. */
static void make_changes(struct vm *vm)
{
	struct instrumentation *in = vm->instrumentation;
	struct incstack_subgraph_change change;
	bool any = false;
	while (incstack_subgraph_next_change(in->subgraph, &change) == 1) {
		put_version(vm, (uint32_t)change.method,
			    change.action == INCSTACK_CHANGE_INSTRUMENT);
		COUNT(changes);
		any = true;
	}
	for (int i = 0; any && i < vm->program->method_count; i++)
		method_set_interpreted(vm->program->methods[i]);
	vm->epoch += any;
}

/* ---- what the subgraph is told ---------------------------------------------------------------- */

static uint32_t list_calls(const struct method *m, struct incstack_call_site *sites)
{
	uint32_t count = 0;
	for (int32_t i = 0; i < m->count; i++) {
		const struct instruction ins = m->body[i];
		if (ins.op == OP_CALL)
			sites[count++] = (struct incstack_call_site){
				FUNCTIONS, NAME_FUNCTION + (uint64_t)ins.a, INCSTACK_CALL_STATIC};
		if (ins.op == OP_CALLV)
			sites[count++] = (struct incstack_call_site){OBJECT, (uint64_t)ins.a,
								     INCSTACK_CALL_VIRTUAL};
	}
	return count;
}

static void tell_class(struct instrumentation *in, uint64_t class_id, uint64_t super,
		       const uint32_t *methods, uint32_t count)
{
	struct incstack_call_site *sites[METHODS_MAX];
	struct incstack_method list[METHODS_MAX];
	const struct incstack_class added = {.size = sizeof(added),
					     .class_id = class_id,
					     .supers = &super,
					     .super_count = super != 0,
					     .method_count = count,
					     .methods = list};
	for (uint32_t i = 0; i < count; i++) {
		const struct method *m = in->plain[methods[i]];
		sites[i] = calloc((size_t)m->count + 1, sizeof(*sites[i]));
		list[i] = (struct incstack_method){.method = m->id,
						   .name = in->name_of[m->id],
						   .flags = m->native ? INCSTACK_METHOD_FIXED : 0,
						   .call_count =
							   m->native ? 0 : list_calls(m, sites[i]),
						   .calls = sites[i]};
	}
	check(incstack_subgraph_add_class(in->subgraph, &added));
	for (uint32_t i = 0; i < count; i++)
		free(sites[i]);
}

static void load_class(struct vm *vm, int class)
{
	struct class *c = &vm->program->classes[class];
	uint32_t methods[METHODS_MAX], count = 0;
	if (atomic_load(&c->is_loaded))
		return;
	if (c->super >= 0)
		load_class(vm, c->super);
	for (int i = 0; i < SELECTORS_MAX; i++)
		if (c->own[i])
			methods[count++] = (uint32_t)c->table[i];
	tell_class(vm->instrumentation, CLASS_FIRST + (uint64_t) class,
		   c->super >= 0 ? CLASS_FIRST + (uint64_t)c->super : OBJECT, methods, count);
	atomic_store(&c->is_loaded, true);
}

/* The names of methods, and the functions, which are all loaded. */
static void tell_functions(struct vm *vm)
{
	struct instrumentation *in = vm->instrumentation;
	uint32_t functions[METHODS_MAX], count = 0;
	for (int i = 0; i < vm->program->method_count; i++) {
		in->class_of[i] = FUNCTIONS;
		in->name_of[i] = NAME_FUNCTION + (uint64_t)i;
	}
	for (int c = 0; c < vm->program->class_count; c++)
		for (int s = 0; s < SELECTORS_MAX; s++)
			if (vm->program->classes[c].own[s]) {
				const int id = vm->program->classes[c].table[s];
				in->class_of[id] = CLASS_FIRST + (uint64_t)c;
				in->name_of[id] = (uint64_t)s;
			}
	for (int i = 1; i < vm->program->method_count; i++)
		if (in->class_of[i] == FUNCTIONS)
			functions[count++] = (uint32_t)i;
	tell_class(in, OBJECT, 0, NULL, 0);
	tell_class(in, FUNCTIONS, 0, functions, count);
}

/* ---- changes while the program runs ------------------------------------------------------------ */

static bool stop_all(struct fiber *f)
{
	struct thread *t = f->thread;
	pages_stop(t->vm);
	int error = incstack_safepoint_stop(t->vm->safepoint, t->safepoint, 0, NULL);
	pages_stopped(t->vm);
	return !error;
}

static void resume_all(struct fiber *f)
{
	incstack_safepoint_resume(f->vm->safepoint, f->thread->safepoint);
	incstack_stack_set_owner(f->stack);
}

void instrument_class(struct fiber *f, uint32_t class)
{
	struct vm *vm = f->vm;
	if (!vm->instrumentation || atomic_load(&vm->program->classes[class].is_seen))
		return;
	incstack_meter_thread_stop(f->meter, INCSTACK_METER_PAUSE);
	if (stop_all(f)) {
		if (!BUG(BUG_CLASS_UNTOLD))
			load_class(vm, (int)class);
		check(incstack_subgraph_class_seen(vm->instrumentation->subgraph,
						   CLASS_FIRST + (uint64_t) class));
		atomic_store(&vm->program->classes[class].is_seen, true);
		make_changes(vm);
		resume_all(f);
	}
	incstack_meter_thread_go(f->meter, INCSTACK_METER_PAUSE);
}

void instrument_called(struct fiber *f, uint32_t method)
{
	struct vm *vm = f->vm;
	if (!vm->instrumentation || BUG(BUG_REFLECTION_UNTOLD) ||
	    vm->program->methods[method]->meter || !calls_are_open(f) || !stop_all(f))
		return;
	check(incstack_subgraph_method_called(vm->instrumentation->subgraph, method));
	make_changes(vm);
	resume_all(f);
}

void instrument_first_run(struct fiber *f, const struct method *m)
{
	if (!stop_all(f))
		return;
	check(incstack_subgraph_method_entered(f->vm->instrumentation->subgraph, m->id));
	make_changes(f->vm);
	resume_all(f);
}

/* A root is removed by a thread as it is added. */
static void change_root(struct vm *vm, uint32_t id)
{
	struct instrumentation *in = vm->instrumentation;
	const bool on = !atomic_load(&in->is_root[id]);
	if (in->plain[id]->native || (!on && in->keeps_roots))
		return;
	in->was_removed |= !on;
	check(on ? incstack_subgraph_add_root(in->subgraph, in->class_of[id], in->name_of[id])
		 : incstack_subgraph_remove_root(in->subgraph, in->class_of[id], in->name_of[id]));
	check(incstack_meter_method_set_root(in->meters[id], on));
	atomic_store(&in->is_root[id], on);
}

void instrument_random(struct fiber *f)
{
	struct vm *vm = f->vm;
	struct instrumentation *in = vm->instrumentation;
	if (!in || !stop_all(f))
		return;
	const uint32_t id = 1 + random_below(&in->random, (uint32_t)vm->program->method_count - 1);
	if (random_below(&in->random, 4) == 0 || atomic_load(&in->is_root[id]))
		change_root(vm, id);
	make_changes(vm);
	resume_all(f);
}

/* As long as no root was removed, what an instrumented method has called, itself or through native methods, is
 * instrumented, too. In scheme B another thread may call a method while the first thread that runs it waits for
 * its callees to be instrumented. */
void instrument_look(struct fiber *f)
{
	const struct program *p = f->vm->program;
	bool inside = false;
	if (!f->meter || f->vm->instrumentation->was_removed ||
	    (f->vm->schedule.threads > 1 && f->vm->schedule.instrument != INSTRUMENT_REACHABLE))
		return;
	for (const uint64_t *at = f->shadow_base + 1; at <= f->shadow; at++) {
		const bool is_called = *at & SHADOW_CALLED;
		if (inside && !is_called && !p->methods[*at >> 32]->native)
			COUNT(mismatches);
		inside |= is_called;
	}
}

/* ---- events ------------------------------------------------------------------------------------ */

void instrument_enter(struct fiber *f, struct method *m)
{
	struct instrumentation *in = f->vm->instrumentation;
	if (!f->vm->schedule.direct) {
		atomic_fetch_add_explicit(&m->events, 1, memory_order_relaxed);
		calls_add(in->calls, f, m, atomic_load(&in->is_root[m->id]));
	}
	if (incstack_meter_enter(f->meter, m->meter, frame_id(f)))
		instrument_first_run(f, m);
}

void instrument_exit(struct fiber *f, const struct method *m)
{
	incstack_meter_exit(f->meter, m->meter, frame_id(f));
}

void instrument_unwound(struct fiber *f)
{
	if (f->meter && !BUG(BUG_EXIT_UNTOLD))
		incstack_meter_unwinding_to(f->meter, frame_id(f));
}

void instrument_mounted(struct fiber *f, bool on)
{
	if (!f->meter)
		return;
	if (on)
		incstack_meter_thread_go(f->meter, INCSTACK_METER_WAIT);
	else
		incstack_meter_thread_stop(f->meter, INCSTACK_METER_WAIT);
}

void instrument_fiber(struct fiber *f)
{
	const struct instrumentation *in = f->vm->instrumentation;
	f->epoch = f->vm->epoch;
	if (!in)
		return;
	check(incstack_meter_thread_create(in->meter, 1, &f->meter));
	instrument_mounted(f, false);
}

void instrument_fiber_end(struct fiber *f)
{
	if (!f->meter)
		return;
	incstack_meter_unwinding_to(f->meter, UINTPTR_MAX);
	incstack_meter_thread_end(f->meter);
	f->meter = NULL;
}

/* ---- a run ------------------------------------------------------------------------------------- */

void instrument_open(struct vm *vm, uint64_t seed)
{
	const uint32_t how = vm->schedule.instrument;
	const struct incstack_subgraph_options options = {
		.size = sizeof(options),
		.scheme = how == INSTRUMENT_REACHABLE ? INCSTACK_SUBGRAPH_REACHABLE
						      : INCSTACK_SUBGRAPH_CALLED,
		.flags = how == INSTRUMENT_RECEIVERS ? INCSTACK_SUBGRAPH_RECEIVERS : 0};
	const struct incstack_meter_options meter_options = {.size = sizeof(meter_options),
							     .contexts = 1 << 16,
							     .depth = 1 << 17,
							     .flags =
								     INCSTACK_METER_FRAMES_DESCEND};
	if (how == INSTRUMENT_NOTHING)
		return;
	struct instrumentation *in = vm->instrumentation = calloc(1, sizeof(*in));
	in->random = seed;
	in->keeps_roots = seed % 2;
	in->calls = calls_new();
	check(incstack_subgraph_create(&options, &in->subgraph));
	check(incstack_meter_create(&meter_options, &in->meter));
	for (int i = 0; i < vm->program->method_count; i++) {
		in->plain[i] = vm->program->methods[i];
		check(incstack_meter_method_create(in->meter, (uint64_t)i, &in->meters[i]));
	}
	for (int c = 0; c < vm->program->class_count; c++) {
		atomic_store(&vm->program->classes[c].is_loaded, false);
		atomic_store(&vm->program->classes[c].is_seen, false);
	}
	tell_functions(vm);
	change_root(vm, vm->program->main->id);
	make_changes(vm);
	vm->program->main = vm->program->methods[vm->program->main->id];
}

/* The meter must have lost nothing, each frame of an instrumented version has reported, and no frame is of a version
 * whose place another one took. */
static uint64_t count_wrong(const struct vm *vm)
{
	const struct instrumentation *in = vm->instrumentation;
	struct incstack_meter_stats stats = {.size = sizeof(stats)};
	uint64_t wrong = 0;
	check(incstack_meter_stats(in->meter, &stats));
	wrong += stats.unseen + stats.nested + stats.too_deep + stats.no_room + stats.lost;
	for (int i = 0; i < METHODS_MAX; i++) {
		const struct method *m = in->instrumented[i];
		const struct method *other = m && vm->program->methods[i] == m ? in->plain[i] : m;
		wrong += m && atomic_load(&m->frames) != atomic_load(&m->events);
		wrong += other && atomic_load(&other->frames) != other->frozen;
	}
	return wrong;
}

void instrument_close(struct vm *vm)
{
	struct instrumentation *in = vm->instrumentation;
	struct incstack_meter_snapshot *snapshot;
	if (!in)
		return;
	check(incstack_meter_snapshot_create(in->meter, 0, &snapshot));
	if (!vm->schedule.direct)
		atomic_fetch_add(&counters.mismatches,
				 calls_compare(in->calls, snapshot) + count_wrong(vm));
	incstack_meter_snapshot_destroy(snapshot);
	vm->program->main = in->plain[vm->program->main->id];
	for (int i = 0; i < vm->program->method_count; i++) {
		vm->program->methods[i] = in->plain[i];
		if (in->instrumented[i]) {
			free(in->instrumented[i]->body);
			free(in->instrumented[i]->handlers);
			free(in->instrumented[i]);
		}
	}
	incstack_meter_destroy(in->meter);
	incstack_subgraph_destroy(in->subgraph);
	calls_free(in->calls);
	free(in);
	vm->instrumentation = NULL;
}
