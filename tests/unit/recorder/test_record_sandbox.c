/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder before the program restricts itself. Without the time-stamp counter, stamps
 * continue from a number that no stamp has reached. Recording ends if a filter would forbid it,
 * and in no other case.
 */
#include "recorder/threads/sandbox.c"
#include "recorder/system/seccomp_filter.c"

#include "run_suite.h"

/* ---- in place of the rest of the recorder ----------------------------------------------- */

struct incstack__recording incstack__recording;
static int own_calls[] = {-1, -1};
static unsigned restricted;

static void count_filter(void)
{
	restricted++;
}

const struct incstack__kind *incstack__kind =
	&(const struct incstack__kind){.system_calls = own_calls, .restricted = count_filter};
INCSTACK__TLS struct incstack__record_local incstack__record_local;
static uint64_t notes;
static unsigned exits, shares, quiets, awaited;

/* Threads that begin from now on see that recording stops. */
void incstack__record_await_unlisted(void)
{
	ck_assert_int_eq(incstack__recording.stopping, 1);
	ck_assert_uint_eq(exits, 0);
	awaited++;
}

void incstack__record_exit(void)
{
	ck_assert_int_eq(incstack__recording.stopping, 1);
	ck_assert_uint_eq(quiets, 0); /* it makes itself quiet */
	ck_assert_uint_eq(awaited, incstack__record_local.state == 0);
	exits++;
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes |= UINT64_C(1) << note;
}

void incstack__record_share(void)
{
	ck_assert_uint_ne(incstack__recording.counter, 0);
	shares++;
}

void incstack__record_protect(struct incstack__protection *before)
{
	(void)before;
	quiets++;
}

void incstack__record_unprotect(const struct incstack__protection *before)
{
	(void)before;
	quiets--;
}

static void begin(void)
{
	incstack__recording.on = 1;
	incstack__recording.pid = getpid();
	incstack__recording.fd = 7;
	incstack__recording.changes = 1;
}

static void forbid(enum incstack__forbidden what, const void *filter)
{
	errno = EXDEV;
	incstack__record_forbid(what, filter);
	ck_assert_int_eq(errno, EXDEV);
	ck_assert_uint_eq(quiets, 0);
}

static void nothing_happened(void)
{
	ck_assert_uint_eq(notes, 0);
	ck_assert_uint_eq(exits, 0);
	ck_assert_uint_eq(shares, 0);
	ck_assert_uint_eq(incstack__recording.counter, 0);
	ck_assert_uint_eq(incstack__recording.changes, 1);
	ck_assert_int_eq(incstack__recording.stopping, 0);
}

/* ---- the clock ---------------------------------------------------------------------------- */

/* A second is ahead of what any thread may have read of the clock, and no second time: other
 * threads may have counted on. */
START_TEST(counter_begins_ahead_of_the_clock)
{
	const uint64_t ahead = UINT64_C(1) << 32;

	begin();
	const uint64_t before = __rdtsc();
	forbid(INCSTACK__FORBIDDEN_CLOCK, NULL);
	const uint64_t counter = incstack__recording.counter;
	ck_assert_uint_ge(counter, before + ahead);
	ck_assert_uint_le(counter, __rdtsc() + ahead);
	ck_assert_uint_eq(notes, UINT64_C(1) << INCSTACK__NOTE_NO_TSC);
	ck_assert_uint_eq(shares, 1);
	ck_assert_uint_eq(incstack__recording.changes, 2); /* no event is quick */
	incstack__recording.counter += 10;
	forbid(INCSTACK__FORBIDDEN_CLOCK, NULL);
	ck_assert_uint_eq(incstack__recording.counter, counter + 10);
	ck_assert_uint_eq(incstack__recording.changes, 3);
	ck_assert_uint_eq(exits, 0);
}
END_TEST

/* ---- filters ------------------------------------------------------------------------------ */

#define NR BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(k) BPF_STMT(BPF_RET | BPF_K, k)

/* All but one call are allowed. */
static void forbid_call(int number, uint32_t result)
{
	struct sock_filter filter[] = {
		NR,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		RETURN(result),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 4, .filter = filter};

	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, &program);
}

static void recording_ended(void)
{
	ck_assert_uint_eq(exits, 1);
	ck_assert_uint_eq(notes, UINT64_C(1) << INCSTACK__NOTE_SECCOMP);
	ck_assert_int_eq(incstack__recording.stopping, 1);
}

enum { CALLS = sizeof(calls) / sizeof(calls[0]) - 1 };

START_TEST(each_call_is_needed)
{
	begin();
	forbid_call(calls[_i], SECCOMP_RET_KILL_PROCESS);
	recording_ended();
}
END_TEST

START_TEST(handler_for_a_call)
{
	begin();
	forbid_call(SYS_mmap, SECCOMP_RET_TRAP);
	recording_ended();
}
END_TEST

/* Most sandboxes begin with such a filter. The recorder makes no calls of another architecture. */
START_TEST(calls_of_other_kinds)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 4, .filter = filter};

	begin();
	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, &program);
	nothing_happened();
}
END_TEST

/* The timers of a CPU profile need calls that no other recording makes. */
START_TEST(calls_of_one_kind)
{
	begin();
	forbid_call(SYS_timer_create, SECCOMP_RET_KILL_PROCESS);
	nothing_happened();
	ck_assert_uint_eq(restricted, 1); /* by a filter that lets the recording go on */
	own_calls[0] = SYS_timer_create;
	forbid_call(SYS_timer_create, SECCOMP_RET_KILL_PROCESS);
	own_calls[0] = -1;
	ck_assert_uint_eq(restricted, 1);
	recording_ended();
}
END_TEST

/* A call that fails does no harm, but a write that fails is a loss. */
START_TEST(calls_that_fail)
{
	begin();
	forbid_call(SYS_mmap, SECCOMP_RET_ERRNO | EPERM);
	forbid_call(SYS_ptrace, SECCOMP_RET_KILL_PROCESS);
	forbid_call(SYS_writev, SECCOMP_RET_LOG);
	nothing_happened();
	forbid_call(SYS_writev, SECCOMP_RET_ERRNO | EPERM);
	recording_ended();
}
END_TEST

/* Writes to the trace file; other writes are the program's own. */
START_TEST(write_to_one_descriptor)
{
	struct sock_filter filter[] = {
		NR,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_writev, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 6, .filter = filter};

	begin();
	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, &program);
	nothing_happened();
	incstack__recording.fd = 8;
	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, &program);
	recording_ended();
}
END_TEST

START_TEST(strict_mode)
{
	begin();
	forbid(INCSTACK__FORBIDDEN_ALL_CALLS, NULL);
	recording_ended();
}
END_TEST

/* The kernel will refuse them. */
START_TEST(filters_that_are_not_there)
{
	const struct sock_fprog program = {.len = 4, .filter = (struct sock_filter *)4096};

	begin();
	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, NULL);
	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, (const void *)4096);
	forbid(INCSTACK__FORBIDDEN_SOME_CALLS, &program);
	nothing_happened();
}
END_TEST

START_TEST(nothing_is_recorded)
{
	for (int what = 0; what < 2; what++) {
		begin();
		incstack__recording.on = what;
		incstack__recording.pid += what; /* the child of a vfork */
		forbid(INCSTACK__FORBIDDEN_CLOCK, NULL);
		forbid(INCSTACK__FORBIDDEN_ALL_CALLS, NULL);
		forbid_call(SYS_mmap, SECCOMP_RET_KILL_PROCESS);
		nothing_happened();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sandboxes");
	TCase *sandboxes = tcase_create("forbidden");

	tcase_add_test(sandboxes, counter_begins_ahead_of_the_clock);
	tcase_add_loop_test(sandboxes, each_call_is_needed, 0, CALLS);
	tcase_add_test(sandboxes, handler_for_a_call);
	tcase_add_test(sandboxes, calls_of_other_kinds);
	tcase_add_test(sandboxes, calls_of_one_kind);
	tcase_add_test(sandboxes, calls_that_fail);
	tcase_add_test(sandboxes, write_to_one_descriptor);
	tcase_add_test(sandboxes, strict_mode);
	tcase_add_test(sandboxes, filters_that_are_not_there);
	tcase_add_test(sandboxes, nothing_is_recorded);
	suite_add_tcase(suite, sandboxes);
	return run_suite(suite);
}
