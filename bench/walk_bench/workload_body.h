/* SPDX-License-Identifier: MIT
 *
 * The functions of the workload. The file that includes this one defines RUN; its name says how it
 * is compiled.
 *
 * A frame is made by one of four call sites in two functions. The turn decides by which one, so two
 * successive frames at one depth never have the same return address. The sequence is regular,
 * because mispredicted branches of the workload would hide the differences between the peers.
 */
#include "workload.h"

enum { SITES = 4, SMALL_FRAME = 16, LARGE_FRAME = 80 };

/* Gives the frame its size. */
#define TOUCH(array) __asm__ volatile("" : : "r"(array) : "memory")

static unsigned odd(struct workload *w, unsigned depth);
static unsigned even(struct workload *w, unsigned depth);

static inline __attribute__((always_inline)) void top(struct workload *w)
{
	w->sample(w);
	w->turn++;
	if (--w->left == 0)
		w->boundary(w);
}

/* The four results are used differently. Otherwise the compiler would merge the calls. */
static inline __attribute__((always_inline)) unsigned frame(struct workload *w, unsigned depth)
{
	unsigned sum = depth;
	if (depth == w->depth) {
		top(w);
		return sum;
	}
	do {
		switch ((w->turn + depth) % SITES) {
		case 0:
			sum += 3 * odd(w, depth + 1);
			break;
		case 1:
			sum ^= even(w, depth + 1);
			break;
		case 2:
			sum -= odd(w, depth + 1);
			break;
		default:
			sum = 5 * sum + even(w, depth + 1);
		}
	} while (depth <= w->floor);
	return sum;
}

__attribute__((noinline)) static unsigned odd(struct workload *w, unsigned depth)
{
	char room[SMALL_FRAME];
	TOUCH(room);
	return frame(w, depth);
}

__attribute__((noinline)) static unsigned even(struct workload *w, unsigned depth)
{
	char room[LARGE_FRAME];
	TOUCH(room);
	return frame(w, depth) + 1;
}

/* The base: frame 0. */
__attribute__((noinline)) void RUN(struct workload *w)
{
	unsigned sum = 0;
	w->turn = 0;
	w->done = 0;
	w->floor = w->popped < w->depth ? w->depth - w->popped : 0;
	w->base = (uintptr_t)__builtin_frame_address(0);
	while (!w->done)
		sum += w->turn & 1 ? odd(w, 1) : even(w, 1);
	TOUCH(&sum);
}
