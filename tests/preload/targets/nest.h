/* SPDX-License-Identifier: MIT
 *
 * Shared by several targets: allocates below a given number of frames.
 */
#ifndef NEST_H
#define NEST_H

#include <stdlib.h>

__attribute__((unused)) static void allocate(void)
{
	void *volatile block = malloc(32);

	free(block);
}

static void nest(int level, void (*action)(void));
static void (*volatile again)(int, void (*)(void)) = nest;

static void nest(int level, void (*action)(void))
{
	if (level == 0)
		action();
	else
		again(level - 1, action);
	__asm__ volatile("" ::: "memory");
}

#endif
