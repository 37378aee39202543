/* SPDX-License-Identifier: MIT
 *
 * incstack heap is not checked: a walk of each deep stack takes too long
 *
 * A program registers unwind information of its own code with libgcc. libgcc sorts it at the first
 * look-up, and allocates with a lock held. When thunks run short, nearly all allocations are of
 * this kind.
 */
#include <stdint.h>

#include "nest.h"

enum { LEVELS = 9000, FIRST = 1000, EVERY = 8, OBJECTS = 40, NODE_WORDS = 8 };

void __register_frame_info(const void *begin, void *node);
void *__deregister_frame_info(const void *begin);
void *_Unwind_Find_FDE(void *code, void *bases[3]);

/* A CIE, and an FDE for the first eight bytes of `code`. */
static struct description {
	uint32_t cie_bytes, cie_id;
	unsigned char cie[8]; /* version 1, no augmentation, factors 1 and -8, return column 16 */
	uint32_t fde_bytes, fde_back;
	uint64_t begin, bytes;
	uint32_t end;
} __attribute__((packed)) descriptions[OBJECTS];
static uintptr_t nodes[OBJECTS][NODE_WORDS];
static char code[OBJECTS * 16];

static void describe(struct description *d, const char *at)
{
	*d = (struct description){
		.cie_bytes = 12,
		.cie = {1, 0, 1, 0x78, 16},
		.fde_bytes = 20,
		.fde_back = 20,
		.begin = (uintptr_t)at,
		.bytes = 8,
	};
}

static void look_up(void)
{
	void *bases[3];

	for (int i = 0; i < OBJECTS; i++)
		__register_frame_info(&descriptions[i], nodes[i]);
	_Unwind_Find_FDE(&code[15], bases); /* behind the first, so in none of them */
	for (int i = 0; i < OBJECTS; i++)
		__deregister_frame_info(&descriptions[i]);
}

static int descend(int level);
static int (*volatile go_on)(int) = descend;

static int descend(int level)
{
	allocate();
	if (level >= FIRST && level % EVERY == 0)
		look_up();
	return level < LEVELS ? go_on(level + 1) + 1 : 0;
}

int main(void)
{
	for (int i = 0; i < OBJECTS; i++)
		describe(&descriptions[i], &code[16 * i]);
	return go_on(0) != LEVELS;
}
