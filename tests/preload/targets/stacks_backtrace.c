/* SPDX-License-Identifier: MIT
 *
 * The program walks its own stack, by backtrace and by _Unwind_Backtrace with a callback
 * that allocates, also in a signal handler. All frames belong to the program or to libc; none is
 * missing and none is added. The first backtrace loads libgcc_s, which allocates.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

enum { MOST = 200, BEYOND = 8 };

static void *volatile kept; /* or the compiler would leave the allocation out */

static void keep(void *block)
{
	kept = block;
	free(block);
}

static void *own; /* where the program lies */
static int failed;

static int is_own(void *address)
{
	Dl_info info;

	return dladdr((char *)address - 1, &info) != 0 && info.dli_fbase == own;
}

static _Unwind_Reason_Code count_own(struct _Unwind_Context *context, void *argument)
{
	int *own_frames = argument;

	for (int i = 0; i < 3; i++)
		keep(malloc(40));
	*own_frames += is_own((void *)_Unwind_GetIP(context));
	return _URC_NO_REASON;
}

static void check(int ok, int number)
{
	if (!ok && failed == 0)
		failed = number;
}

/* `levels` frames of rec() and main call this. */
static __attribute__((noinline)) void look(int levels)
{
	void *frames[MOST];
	int all, own_frames = 0, first = 0;

	memset(frames, 0, sizeof(frames));
	all = backtrace(frames, MOST);
	for (int i = 0; i < all; i++)
		first += is_own(frames[i]);
	check(first >= levels + 2 && is_own(frames[levels + 1]), 10);
	check(all - first <= BEYOND, 11);
	for (int most = 1; most <= levels; most++)
		check(backtrace(frames, most) == most && is_own(frames[most - 1]), 12);
	_Unwind_Backtrace(count_own, &own_frames);
	check(own_frames == first, 13);
}

static void rec(int level, int levels);
static void (*volatile again)(int, int) = rec;

static void rec(int level, int levels)
{
	void *volatile block = malloc(20);

	if (level > 0)
		again(level - 1, levels);
	else
		look(levels);
	free(block);
	keep(malloc(9));
}

static __attribute__((noinline)) void in_handler(int number)
{
	(void)number;
	keep(malloc(30));
	look(0);
	keep(NULL); /* no jump: this frame must be there */
}

int main(void)
{
	Dl_info info;

	if (dladdr((void *)main, &info) == 0)
		return 1;
	own = info.dli_fbase;
	look(0); /* nothing was allocated yet */
	signal(SIGUSR1, in_handler);
	for (int i = 0; i < 60; i++) {
		again(i % 31, i % 31 + 1);
		if (i % 10 == 0)
			raise(SIGUSR1);
	}
	return failed;
}
