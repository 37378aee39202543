/* SPDX-License-Identifier: MIT
 *
 * The walkers that are compared. All of them begin at the function that the workload calls, or at
 * its caller.
 */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include <libunwind.h>

#include "peers.h"

const char *const peer_names[PEER_COUNT] = {"none",  "ours",    "unw_backtrace", "libgcc",
					    "glibc", "fp_walk", "own_walk"};

/* As a consumer with bounded memory would do it, traces are handed over when they fill about this
 * many bytes, which fit in the second-level cache. */
enum { BYTES_MAX = 1 << 20, INTERVAL_MIN = 16 };

/* BATCH: memory is reserved for this many traces at once. */
enum { BATCH = 64, FRAMES_OURS = INCSTACK_DISTANCE_MAX + 16 + 8, FRAMES_BELOW = 8 };
enum { BYTES_LIFT = FRAMES_MAX * sizeof(struct incstack_frame_object) };

struct peers peers;

/* libunwind exports backtrace, too, and might export _Unwind_Backtrace first. */
static int (*glibc_backtrace)(void **, int);
static _Unwind_Reason_Code (*libgcc_backtrace)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*libgcc_ip)(struct _Unwind_Context *);

/* ---- the walkers ----------------------------------------------------------------- */

static void sample_none(struct workload *w)
{
	__asm__ volatile("" : : "r"(w) : "memory");
}

static void sample_unw(struct workload *w)
{
	int count = unw_backtrace(peers.pcs, FRAMES_MAX);
	(void)w;
	peers.count = count > 0 ? (size_t)count : 0;
}

static void sample_glibc(struct workload *w)
{
	int count = glibc_backtrace(peers.pcs, FRAMES_MAX);
	(void)w;
	peers.count = count > 0 ? (size_t)count : 0;
}

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument)
{
	struct peers *p = argument;
	void *pc = (void *)libgcc_ip(context);
	/* The unwinder reports one frame more, the caller of _start. */
	if (!pc || p->count == FRAMES_MAX)
		return _URC_END_OF_STACK;
	p->pcs[p->count++] = pc;
	return _URC_NO_REASON;
}

static void sample_libgcc(struct workload *w)
{
	(void)w;
	peers.count = 0;
	libgcc_backtrace(note, &peers);
}

/* The simplest possible walk. It ends at the base of the workload, because the frames below have no
 * frame pointers. */
static void sample_fp(struct workload *w)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	void **out = peers.pcs;
	while ((uintptr_t)frame < w->base) {
		*out++ = (void *)frame[1];
		frame = (const uintptr_t *)frame[0];
	}
	peers.count = (size_t)(out - peers.pcs);
}

/* ---- ours ------------------------------------------------------------------------- */

/* Returns how many traces fill the bytes if they are as large as those of the last tree. */
static uint64_t interval_of(uint64_t traces, uint64_t objects)
{
	uint64_t bytes = traces * sizeof(struct incstack_trace) +
			 objects * sizeof(struct incstack_frame_object);
	uint64_t interval = BYTES_MAX * traces / bytes;
	if (interval < BATCH)
		return interval > INTERVAL_MIN ? interval : INTERVAL_MIN;
	return interval - interval % BATCH;
}

static void retrieve(struct tracer *t)
{
	struct incstack_tree *tree;
	t->pending = t->upkeep = 0;
	if (incstack_stack_retrieve(t->stack, &tree)) {
		t->errors++;
		return;
	}
	t->traces += tree->count;
	t->incomplete += tree->truncated;
	t->interval = interval_of(tree->count, tree->objects);
	incstack_tree_release(tree);
}

static void make_room(struct tracer *t)
{
	if (t->pending >= t->interval)
		retrieve(t);
	uint64_t batch = t->interval < BATCH ? t->interval : BATCH;
	t->errors += !!incstack_stack_reserve(t->stack, batch * t->room);
	t->upkeep = t->pending + batch;
}

static inline __attribute__((always_inline)) void sample(struct tracer *t, const uintptr_t *frame)
{
	const struct incstack_top top = {
		.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
	if (t->pending >= t->upkeep)
		make_room(t);
	if (incstack_stack_sample(t->stack, t->pending, 1, &top))
		t->errors++;
	t->pending++;
}

static void sample_ours(struct workload *w)
{
	(void)w;
	sample(&peers.ours, __builtin_frame_address(0));
}

static void sample_full(struct workload *w)
{
	(void)w;
	sample(&peers.full, __builtin_frame_address(0));
}

static int tracer_open(struct tracer *t, enum incstack_mode mode, size_t frames)
{
	const struct incstack_options options = {
		.size = sizeof(options), .mode = mode, .distance = peers.distance};
	size_t bytes = frames * sizeof(struct incstack_frame_object);

	memset(t, 0, sizeof(*t));
	t->interval = interval_of(1, frames);
	t->room = bytes + sizeof(struct incstack_trace);
	if (incstack_runtime_create_native(&options, &t->runtime) ||
	    incstack_stack_create_native(t->runtime, &t->stack)) {
		fprintf(stderr, "walk_bench: cannot create a stack\n");
		return -1;
	}
	return 0;
}

static void tracer_close(struct tracer *t)
{
	if (t->stack)
		incstack_stack_destroy(t->stack);
	if (t->runtime)
		incstack_runtime_destroy(t->runtime);
	memset(t, 0, sizeof(*t));
}

/* ---- the table --------------------------------------------------------------------- */

static int find_functions(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *libgcc = dlopen("libgcc_s.so.1", RTLD_NOW);
	if (!libc || !libgcc)
		return -1;
	*(void **)&glibc_backtrace = dlsym(libc, "backtrace");
	*(void **)&libgcc_backtrace = dlsym(libgcc, "_Unwind_Backtrace");
	*(void **)&libgcc_ip = dlsym(libgcc, "_Unwind_GetIP");
	return glibc_backtrace && libgcc_backtrace && libgcc_ip ? 0 : -1;
}

int peers_open(unsigned depth)
{
	if (find_functions()) {
		fprintf(stderr, "walk_bench: a walker is missing: %s\n", dlerror());
		return -1;
	}
	peers.errors = 0;
	if (tracer_open(&peers.ours, INCSTACK_MODE_PATCH, FRAMES_OURS) == 0 &&
	    tracer_open(&peers.full, INCSTACK_MODE_FULL, depth + FRAMES_BELOW) == 0)
		return 0;
	peers_close();
	return -1;
}

void peers_close(void)
{
	tracer_close(&peers.ours);
	tracer_close(&peers.full);
}

void (*peer_sample(enum peer peer))(struct workload *)
{
	static void (*const samples[PEER_COUNT])(struct workload *) = {
		sample_none,  sample_ours, sample_unw, sample_libgcc,
		sample_glibc, sample_fp,   sample_full};
	return samples[peer];
}

void peer_begin(enum peer peer)
{
	if (peer == PEER_OURS)
		peers.errors += !!incstack_stack_set_mode(peers.ours.stack, INCSTACK_MODE_PATCH);
}

void peer_finish(enum peer peer)
{
	if (peer == PEER_OURS && peers.ours.pending)
		retrieve(&peers.ours);
	if (peer == PEER_OWN_WALK && peers.full.pending)
		retrieve(&peers.full);
}

void peer_end(enum peer peer)
{
	/* The change of mode completes the open traces. It must not run out of memory. */
	if (peer == PEER_OURS)
		peers.errors += !!incstack_stack_reserve(peers.ours.stack, BYTES_LIFT) ||
				!!incstack_stack_set_mode(peers.ours.stack, INCSTACK_MODE_FULL);
}

static size_t last_of_tracer(struct tracer *t, uintptr_t *pcs, size_t max)
{
	struct incstack_tree *tree;
	size_t count = 0;
	t->pending = t->upkeep = 0;
	if (incstack_stack_retrieve(t->stack, &tree))
		return 0;
	const struct incstack_trace *last = tree->traces;
	while (last && last->next)
		last = last->next;
	for (const struct incstack_frame_object *o = last ? last->top : NULL; o && count < max;
	     o = o->parent)
		pcs[count++] = (uintptr_t)o->function;
	incstack_tree_release(tree);
	return count;
}

size_t peer_last(enum peer peer, uintptr_t *pcs, size_t max)
{
	if (peer == PEER_OURS || peer == PEER_OWN_WALK)
		return last_of_tracer(peer == PEER_OURS ? &peers.ours : &peers.full, pcs, max);
	size_t count = peers.count < max ? peers.count : max;
	for (size_t i = 0; i < count; i++)
		pcs[i] = (uintptr_t)peers.pcs[i];
	return count;
}

uint64_t peers_faults(void)
{
	return peers.errors + peers.ours.errors + peers.full.errors + peers.ours.incomplete +
	       peers.full.incomplete;
}
