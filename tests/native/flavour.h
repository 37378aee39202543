/* SPDX-License-Identifier: MIT
 *
 * One scenario of setjmp and longjmp, compiled by each compiler at each level of optimization:
 * what the objects of flavour_longjmp.c export, and what they call.
 */
#ifndef FLAVOUR_H
#define FLAVOUR_H

#include <setjmp.h>

struct flavour_calls {
	void (*sample)(void);
	void (*popping)(void *target); /* before a jump into the frame that holds target */
};

/* Jumps twice out of `frames` frames, with samples at every stage. Returns what
 * it computed on the way, which is the same in every flavour. */
typedef long flavour_scenario(const struct flavour_calls *calls, int frames);

#endif
