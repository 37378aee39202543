/* SPDX-License-Identifier: MIT
 *
 * What the module offers to other C code of the process: incstack_python.h.
 */
#include "incstack_python.h"

#include <incstack/error.h>

#include "allocators.h"
#include "lock.h"
#include "recording.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int incstack_python_abi(void)
{
	return INCSTACK_PYTHON_ABI;
}

EXPORTED int incstack_python_open(void)
{
	if (recording_is_on())
		return INCSTACK_EBUSY;
	if (!recording_start(RECORDING_NUMBERS))
		return INCSTACK_ENOMEM;
	if (allocators_install(false))
		return 0;
	incstack_python_close();
	return INCSTACK_EBUSY;
}

EXPORTED void incstack_python_close(void)
{
	allocators_remove();
	recording_stop();
}

EXPORTED uint32_t incstack_python_context(void)
{
	const uint32_t context = recording_context(false);
	return context < CONTEXTS_FIRST ? 0 : context;
}

EXPORTED int incstack_python_describe(uint32_t number, struct incstack_python_context *context)
{
	int error = INCSTACK_EINVAL;
	lock_take();
	if (number >= CONTEXTS_FIRST && number < context_count) {
		const struct context *c = &contexts[number];
		const struct code *code = codes_at(c->code);
		*context = (struct incstack_python_context){
			.parent = c->parent < CONTEXTS_FIRST ? 0 : c->parent,
			.line = c->line,
			.name = code->name,
			.file = code->file,
			.is_entry = (c->place & CONTEXTS_ENTRY) != 0};
		error = 0;
	}
	lock_give();
	return error;
}
