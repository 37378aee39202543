/* SPDX-License-Identifier: MIT
 *
 * The native embedder: its table of callbacks, and the creation of a runtime that uses it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <incstack/native.h>

#include "native.h"

/* Allocates by mmap. The host may be inside malloc when the core needs memory. */
static void *allocate(void *context, size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)context;
	return memory == MAP_FAILED ? NULL : memory;
}

static void release(void *context, void *memory, size_t bytes)
{
	(void)context;
	munmap(memory, bytes);
}

/* It fails with INCSTACK_EBUSY. Otherwise another thread might read the rule later, while the code
 * is unloaded. Only a thread that runs the code may read its rules. */
static int find_rule_in_handler(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (incstack__native_finds_in_handlers &&
	    incstack__native_find_rule_quickly(context, address, rule) == 0)
		return 0;
	return INCSTACK_EBUSY;
}

static const struct incstack_embedder native_embedder = {
	.size = sizeof(struct incstack_embedder),
	.code.find_rule = incstack__native_find_rule,
	.memory.allocate = allocate,
	.memory.release = release,
	.code.find_rule_quickly = incstack__native_find_rule_quickly,
	.signals.find_rule = find_rule_in_handler,
	.signals.interrupted = incstack__native_interrupted,
};

const struct incstack_embedder *incstack_native_embedder(void)
{
	return &native_embedder;
}

uint32_t incstack__native_mode(uint32_t wanted)
{
	const char *allowed = getenv("INCSTACK_MODE");
	uint32_t most = INCSTACK_MODE_FULL;

	if (!allowed || !*allowed || strcmp(allowed, "patch") == 0)
		return wanted;
	if (strcmp(allowed, "validate") == 0)
		most = INCSTACK_MODE_VALIDATE;
	return wanted < most ? most : wanted;
}

int incstack_runtime_create_native(const struct incstack_options *options,
				   struct incstack_runtime **runtime)
{
	struct incstack_options mine = {0};

	if (!runtime || (options && options->size != sizeof(*options)))
		return INCSTACK_EINVAL;
	if (options)
		mine = *options;
	if (mine.embedder && mine.embedder != &native_embedder)
		return INCSTACK_EINVAL;
	mine.size = sizeof(mine);
	mine.embedder = &native_embedder;
	mine.mode = incstack__native_mode(mine.mode);
	/* The address space is made here because malloc is allowed here. At the first unknown pc
	 * it is not. */
	if (!incstack__native_space())
		return INCSTACK_ENOMEM;
	return incstack_runtime_create(&mine, runtime);
}
