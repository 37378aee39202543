/* SPDX-License-Identifier: MIT
 *
 * Tests more barriers than the text has thunks. Pools that are made at run time behave like the
 * first one for returns, exceptions, unwinders and walkers. Where the system forbids them,
 * traces are just as complete.
 */
#include "../unit/real_stack.h"
#include "../unit/run_suite.h"

#include <cerrno>
#include <dlfcn.h>
#include <incstack/native.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline))

enum { DEPTH = 9000, EAGER_DEPTH = 4400, RESERVE_EVERY = 256, MARGIN = 1000 };

static bool forbid_code, forbid_data;
/* The program is linked with --wrap of this function. */
extern "C" long __real_incstack__system_call(long number, ...);
extern "C" long __wrap_incstack__system_call(long number, long a, long b, long c, long d, long e,
					     long f)
{
	if (number == SYS_mprotect &&
	    ((forbid_code && c & PROT_EXEC) || (forbid_data && c & PROT_WRITE)))
		return -EACCES;
	return __real_incstack__system_call(number, a, b, c, d, e, f);
}

/* As in LLVM's libunwind, whose function of that name does nothing. */
static bool deaf;
extern "C" void __register_frame_info(const void *info, void *node)
{
	void *next = dlsym(RTLD_NEXT, "__register_frame_info");
	void (*real)(const void *, void *);
	memcpy(&real, &next, sizeof(next));
	if (!deaf)
		real(info, node);
}

static int destroyed;
struct guard {
	~guard()
	{
		destroyed++;
	}
};

static int (*at_bottom)();

/* Every frame is sampled on the way down, so that each return is intercepted. */
static NOINLINE int descend(int depth)
{
	guard g;
	if (depth % RESERVE_EVERY == 0)
		ck_assert_int_eq(incstack_stack_reserve(s, 64 << 10), 0);
	take_sample();
	int result = depth ? descend(depth - 1) : at_bottom ? at_bottom() : 0;
	__asm__ volatile("" ::"r"(&g) : "memory");
	return result + 1;
}

static void setup()
{
	open_runtime(1);
	s = open_stack();
	samples = 0;
	destroyed = 0;
	at_bottom = nullptr;
}

static unsigned depth_of(const struct incstack_trace *t)
{
	unsigned depth = 0;
	for (const struct incstack_frame_object *o = t->top; o; o = o->parent)
		depth++;
	return depth;
}

/* Every trace of descend(depth) is complete, one frame deeper than the one before. */
static void check_traces(unsigned depth)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->truncated, 0);
	ck_assert_uint_eq(tree->count, depth + 1);
	unsigned first = depth_of(tree->traces), i = 0;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next, i++)
		if (i % 1000 == 0 || i == depth)
			ck_assert_uint_eq(depth_of(t), first + i);
	incstack_tree_release(tree);
}

START_TEST(returns)
{
	setup();
	ck_assert_int_eq(descend(DEPTH), DEPTH + 1);
	struct incstack_stats stats = stats_of_stack();
	ck_assert_uint_eq(stats.no_thunk, 0);
	ck_assert_uint_ge(stats.pools, 2);
	ck_assert_uint_ge(stats.planted, DEPTH);
	ck_assert_uint_ge(stats.returns, DEPTH);
	ck_assert_uint_eq(stats.stale, 0);
	check_traces(DEPTH);
	ck_assert_int_eq(descend(DEPTH), DEPTH + 1); /* thunks are used again */
	ck_assert_uint_eq(stats_of_stack().pools, stats.pools);
	close_all();
}
END_TEST

static _Unwind_Reason_Code count_line(struct _Unwind_Context *, void *argument)
{
	++*static_cast<int *>(argument);
	return _URC_NO_REASON;
}

/* How many more lines libgcc's walk has than ours. (The backtrace of a program that
 * links libunwind is libunwind's, which does not know code made at run time.) */
static NOINLINE int lines_beyond_ours()
{
	const int room = DEPTH + MARGIN;
	int lines = 0;
	ck_assert_int_eq(_Unwind_Backtrace(count_line, &lines), _URC_END_OF_STACK);
	struct incstack_frame *frames = new struct incstack_frame[room];
	int walked = incstack_native_walk(frames, room);
	delete[] frames;
	ck_assert_int_lt(walked, room);
	return lines - walked;
}

static int unpatched;
static int walk_below()
{
	ck_assert_int_eq(lines_beyond_ours() - unpatched, (int)stats_of_stack().planted);
	return 0;
}

START_TEST(unwinders_pass)
{
	setup();
	at_bottom = walk_below;
	unpatched = lines_beyond_ours();
	ck_assert_int_eq(descend(DEPTH), DEPTH + 1);
	check_traces(DEPTH);
	close_all();
}
END_TEST

/* What slots hold is the same as before anything was patched. */
static int read_slots()
{
	const uintptr_t *fp = static_cast<const uintptr_t *>(__builtin_frame_address(0));
	uintptr_t inside = incstack_slot_read(fp + 1);
	fp = reinterpret_cast<const uintptr_t *>(*fp);
	uintptr_t recursive = 0;
	for (int i = 1; i < DEPTH; i++, fp = reinterpret_cast<const uintptr_t *>(*fp)) {
		uintptr_t pc = incstack_slot_read(fp + 1);
		ck_assert_uint_ne(pc, fp[1]);
		ck_assert(recursive == 0 || pc == recursive);
		recursive = pc;
	}
	ck_assert_uint_lt(recursive - inside + 256, 512);
	return 0;
}

START_TEST(slots_are_readable)
{
	setup();
	at_bottom = read_slots;
	ck_assert_int_eq(descend(DEPTH), DEPTH + 1);
	close_all();
}
END_TEST

static int throw_below()
{
	throw 42;
}

START_TEST(exceptions_pass)
{
	setup();
	at_bottom = throw_below;
	int caught = 0;
	try {
		descend(DEPTH);
	} catch (int value) {
		caught = value;
	}
	ck_assert_int_eq(caught, 42);
	ck_assert_int_eq(destroyed, DEPTH + 1);
	struct incstack_stats stats = stats_of_stack();
	ck_assert_uint_ge(stats.unwound, DEPTH);
	ck_assert_uint_eq(stats.stale, 0);
	check_traces(DEPTH);
	close_all();
}
END_TEST

/* Without pools, thunks run short. The barriers are thinned then, so each sample still has its own. */
static void expect_thinned()
{
	ck_assert_int_eq(incstack_stack_reserve(s, 8 << 20), 0);
	ck_assert_int_eq(descend(EAGER_DEPTH), EAGER_DEPTH + 1);
	struct incstack_stats stats = stats_of_stack();
	ck_assert_uint_eq(stats.pools, 0);
	ck_assert_int_gt((int64_t)stats.pools_refused, 0);
	ck_assert_uint_ge(stats.planted, EAGER_DEPTH);
	ck_assert_uint_eq(stats.no_thunk, 0);
	ck_assert_uint_eq(stats.stale, 0);
	check_traces(EAGER_DEPTH);
}

START_TEST(executable_memory_refused)
{
	setup();
	forbid_code = true;
	expect_thinned();
	close_all();
}
END_TEST

START_TEST(unwinder_is_deaf)
{
	setup();
	deaf = true;
	expect_thinned();
	close_all();
}
END_TEST

START_TEST(memory_of_pools_refused)
{
	setup();
	forbid_data = true;
	expect_thinned();
	close_all();
}
END_TEST

/* Without the cells of the first pool there is no barrier, so there is no runtime; later there
 * may be. */
START_TEST(first_pool_refused)
{
	struct incstack_embedder embedder = {};
	struct incstack_options options = {};
	embedder.size = sizeof(embedder);
	embedder.code.frame_pointers = 1;
	options.size = sizeof(options);
	options.embedder = &embedder;
	forbid_data = true;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), INCSTACK_ENOMEM);
	forbid_data = false;
	setup();
	ck_assert_int_eq(descend(MARGIN), MARGIN + 1);
	ck_assert_uint_ge(stats_of_stack().returns, MARGIN);
	close_all();
}
END_TEST

/* A stack whose frames use up all thunks, one by one, before it may make more. */
static NOINLINE int descend_without_reserve(int depth)
{
	take_sample();
	int result = depth ? descend_without_reserve(depth - 1) : 0;
	__asm__ volatile("" ::: "memory");
	return result + 1;
}

/* However often no thunk was left, the pool that is made later has all of its thunks. */
START_TEST(pool_is_made_after_all_are_used)
{
	setup();
	ck_assert_int_eq(incstack_stack_reserve(s, 8 << 20), 0);
	ck_assert_int_eq(descend_without_reserve(EAGER_DEPTH), EAGER_DEPTH + 1);
	struct incstack_stats stats = stats_of_stack();
	ck_assert_uint_eq(stats.pools, 0);
	ck_assert_uint_gt(stats.no_thunk, 100);
	const uint64_t planted = stats.planted, refused = stats.no_thunk;
	check_traces(EAGER_DEPTH);
	ck_assert_int_eq(descend(DEPTH), DEPTH + 1);
	stats = stats_of_stack();
	ck_assert_uint_ge(stats.pools, 1);
	ck_assert_uint_eq(stats.no_thunk, refused);
	ck_assert_uint_ge(stats.planted - planted, DEPTH);
	check_traces(DEPTH);
	close_all();
}
END_TEST

static const void *registered;
static size_t registered_bytes;
static int keep_info(void *, const void *info, size_t bytes)
{
	registered = info;
	registered_bytes = bytes;
	return 0;
}

static int refuse_info(void *, const void *, size_t)
{
	return -1;
}

static void setup_hook(int (*hook)(void *, const void *, size_t))
{
	struct incstack_embedder embedder = {};
	struct incstack_options options = {};
	embedder.size = sizeof(embedder);
	embedder.code.frame_pointers = 1;
	embedder.code.register_unwind_info = hook;
	options.size = sizeof(options);
	options.distance = 1;
	options.embedder = &embedder;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	s = open_stack();
}

START_TEST(embedder_refuses)
{
	setup_hook(refuse_info);
	expect_thinned();
	close_all();
}
END_TEST

START_TEST(embedder_registers)
{
	setup_hook(keep_info);
	ck_assert_int_eq(descend(DEPTH), DEPTH + 1);
	ck_assert_uint_eq(stats_of_stack().no_thunk, 0);
	ck_assert_ptr_nonnull(registered);
	uint32_t last;
	memcpy(&last, static_cast<const char *>(registered) + registered_bytes - 4, 4);
	ck_assert_uint_eq(last, 0);
	close_all();
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
/* What libgcc sorts the information of a pool into, which stays registered. */
extern "C" const char *__lsan_default_suppressions(void)
{
	return "leak:libgcc_s";
}
#endif

int main()
{
	Suite *suite = suite_create("pools");
	TCase *tc = tcase_create("made at run time");
	tcase_add_test(tc, first_pool_refused); /* with CK_FORK=no, while there is none */
	tcase_add_test(tc, returns);
	tcase_add_test(tc, unwinders_pass);
	tcase_add_test(tc, slots_are_readable);
	tcase_add_test(tc, exceptions_pass);
	tcase_add_test(tc, executable_memory_refused);
	tcase_add_test(tc, memory_of_pools_refused);
	tcase_add_test(tc, pool_is_made_after_all_are_used);
	tcase_add_test(tc, unwinder_is_deaf);
	tcase_add_test(tc, embedder_refuses);
	tcase_add_test(tc, embedder_registers);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
