// SPDX-License-Identifier: MIT
//
// Tests unannounced exits out of a sample and out of an intercepted return: by longjmp, by an
// exception and by cancellation, at each place where the embedder is asked for a rule. The next
// return through a thunk, sample or retrieve starts afresh: each trace equals a full walk or is
// a marked part of one, and later samples are complete.
#include <csetjmp>
#include <pthread.h>

#include "../unit/run_suite.h"
#include "traced.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" void __asan_handle_no_return(void);
#endif

#define NOINLINE __attribute__((noinline))

enum { LEVELS = 6, CATCHER = 4, MOST = 64 };
enum exit_by { BY_JUMP, BY_EXCEPTION, BY_CANCELLATION, EXITS };
enum place { OUT_OF_SAMPLE, OUT_OF_RETURN, PLACES };
enum next { NEXT_RETURN, NEXT_SAMPLE, NEXT_RETRIEVE, NEXTS };
static const uint32_t distances[] = {1, 2, 4};
enum { DISTANCES = sizeof(distances) / sizeof(*distances) };

struct left_exception {
};

static exit_by exit_kind;
static place exit_place;
static next exit_next;
static int chosen;    // the level whose sample or return is left
static int questions; // until it is left; below 0: it is not
static bool left;
static int part_truncated;
static std::jmp_buf out;

// ---- the embedder that is left ------------------------------------------------------------

// Frames that a cancelled thread leaves would stay poisoned.
static void forget_poison()
{
#ifdef __SANITIZE_ADDRESS__
	__asan_handle_no_return();
#endif
}

static void leave()
{
	left = true;
	if (exit_kind == BY_JUMP)
		std::longjmp(out, 1);
	if (exit_kind == BY_EXCEPTION)
		throw left_exception();
	forget_poison();
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static int rule_or_exit(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (questions >= 0 && questions-- == 0)
		leave();
	return incstack_native_embedder()->code.find_rule_quickly(context, address, rule);
}

static void open_stack(uint32_t distance)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	struct incstack_options options = {};
	embedder.code.find_rule_quickly = rule_or_exit;
	options.size = sizeof(options);
	options.embedder = &embedder;
	options.distance = distance;
	questions = -1;
	ck_assert_int_eq(incstack_runtime_create(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
	traced_samples = 0;
}

// Compares what was sampled, and returns how many traces are truncated. Objects of the sample
// that was left are in the tree, too, and truncated, though no trace leads to them.
static int compare()
{
	struct incstack_tree *tree;
	int truncated = 0;
	ck_assert_int_eq(incstack_stack_retrieve(traced_stack, &tree), 0);
	ck_assert_uint_eq(tree->count, static_cast<uint64_t>(traced_samples));
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		ck_assert_msg(traced_agrees(t, &truncated), "trace %d of %d",
			      static_cast<int>(t->id), traced_samples);
	ck_assert(truncated == 0 || tree->truncated > 0);
	incstack_tree_release(tree);
	traced_samples = 0;
	return truncated;
}

// ---- the program ---------------------------------------------------------------------------

static int countdown;

// No rule is known any more, and one of the next questions is the last.
static void arm_exit()
{
	ck_assert_int_eq(incstack_runtime_code_unloading(traced_runtime, nullptr, 1, UINTPTR_MAX),
			 0);
	questions = countdown;
	countdown = -1;
}

static NOINLINE void sample_at(int level)
{
	questions = -1; // of the return before
	if (countdown >= 0 && exit_place == OUT_OF_SAMPLE && level == chosen)
		arm_exit();
	traced_sample();
	questions = -1;
}

static NOINLINE void after_landing()
{
	questions = -1;
	if (!left)
		return;
	if (exit_next == NEXT_SAMPLE)
		traced_sample();
	if (exit_next == NEXT_RETRIEVE)
		part_truncated += compare();
	__asm__ volatile("");
}

static void go_down(int level);

static NOINLINE void land_by_jump(int level)
{
	if (setjmp(out) == 0)
		go_down(level);
	after_landing();
}

static NOINLINE void land_by_exception(int level)
{
	try {
		go_down(level);
	} catch (const left_exception &) {
	}
	after_landing();
}

// A thread that is cancelled lands nowhere; its frames run on while they are left.
static NOINLINE void pass_by_cancellation(int level)
{
	try {
		go_down(level);
	} catch (...) {
		after_landing();
		throw;
	}
	after_landing();
}

// The frame is so large that an operation which was left in a deeper one began below any
// operation of its callers: else it might still be in progress, and they would be refused.
static NOINLINE void go_down(int level)
{
	char room[2048];
	__asm__ volatile("" : : "r"(room) : "memory");
	sample_at(level);
	if (level == CATCHER && exit_kind == BY_JUMP)
		land_by_jump(level - 1);
	else if (level == CATCHER && exit_kind == BY_EXCEPTION)
		land_by_exception(level - 1);
	else if (level == CATCHER)
		pass_by_cancellation(level - 1);
	else if (level > 0)
		go_down(level - 1);
	if (left && exit_next == NEXT_RETURN && level > 0)
		return; // the first thing that the library sees
	sample_at(level);
	if (countdown >= 0 && exit_place == OUT_OF_RETURN && level == chosen)
		arm_exit();
	__asm__ volatile("");
}

// What was left is compared, and then what comes later: that is complete.
static void check_all()
{
	questions = countdown = -1;
	const int truncated = compare();
	ck_assert(left || truncated == 0);
	part_truncated += truncated;
	ck_assert_int_eq(incstack__stack_verify(traced_stack), 0);
	const bool was = left;
	left = false;
	exit_kind = BY_JUMP;
	go_down(LEVELS);
	ck_assert_int_eq(traced_check(), 0);
	left = was;
}

// Also where the thread is cancelled.
struct at_the_end {
	~at_the_end()
	{
		check_all();
		ck_assert_uint_eq(incstack__stack_broken(traced_stack), 0);
		traced_close();
	}
};

static void *run_thread(void *distance)
{
	open_stack(*static_cast<const uint32_t *>(distance));
	at_the_end check;
	go_down(LEVELS);
	return nullptr;
}

// False: the exit did not come, for fewer questions were asked.
static bool run_once(uint32_t distance)
{
	pthread_t thread;
	left = false;
	ck_assert_int_eq(pthread_create(&thread, nullptr, run_thread, &distance), 0);
	ck_assert_int_eq(pthread_join(thread, nullptr), 0);
	return left;
}

START_TEST(exits)
{
	const exit_by kind = static_cast<exit_by>(_i % EXITS);
	exit_place = static_cast<place>(_i / EXITS % PLACES);
	exit_next = static_cast<next>(_i / EXITS / PLACES % NEXTS);
	const uint32_t distance = distances[_i / EXITS / PLACES / NEXTS];
	int count = 0;
	const int levels = exit_next == NEXT_RETURN ? CATCHER : CATCHER - 1;
	for (chosen = 0; chosen < levels; chosen++)
		for (int n = 0; n < MOST; n++, count++) {
			exit_kind = kind;
			countdown = n;
			if (!run_once(distance))
				break;
		}
	ck_assert_int_gt(count, 0);
	ck_assert(distance != 1 || (count >= levels && part_truncated > 0));
}
END_TEST

int main()
{
	Suite *suite = suite_create("unannounced exits");
	TCase *tests = tcase_create("out of the middle");
	tcase_add_loop_test(tests, exits, 0, EXITS * PLACES * NEXTS * DISTANCES);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
