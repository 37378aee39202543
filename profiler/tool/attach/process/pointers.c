/* SPDX-License-Identifier: MIT
 *
 * Steps by frame pointers, where the process has no unwind rule for its code: code that was made at run time,
 * and that of Go. The bytes of the code come from the copy of its module, or else from the memory of the process,
 * which may have other code there by now. So they only decide whether a step is made.
 */
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "copy.h"
#include "native/frame_pointer.h"
#include "pointers.h"

void tool_attach_memory_close(struct tool_attach_memory *memory)
{
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = TOOL_ATTACH_MEMORY_CLOSED;
}

static bool read_memory(struct tool_attach_memory *memory, uint64_t address, void *to, size_t bytes)
{
	if (memory->fd == TOOL_ATTACH_MEMORY_CLOSED) {
		memory->fd = tool_attach_ask_memory();
		if (memory->fd < 0)
			memory->fd = TOOL_ATTACH_MEMORY_DENIED;
	}
	return memory->fd >= 0 && address <= INT64_MAX &&
	       pread(memory->fd, to, bytes, (off_t)address) == (ssize_t)bytes;
}

static bool read_code(struct tool_attach_memory *memory, const struct tool_attach_module *module,
		      uint64_t address, void *to, size_t bytes)
{
	const uint64_t at = module ? address - module->low : 0;

	if (!module || !module->copy || address < module->low ||
	    !tool_attach_copy_get(module->copy, at, bytes))
		return read_memory(memory, address, to, bytes);
	memcpy(to, module->copy->memory + at, bytes);
	return true;
}

/* Whether the object has code there, and not data. */
static bool is_code(const struct tool_attach_module *module, uint64_t address)
{
	const uint64_t at = address - module->low;

	for (unsigned i = 0; module->copy && i < module->copy->count; i++)
		if (module->copy->parts[i].is_code && at >= module->copy->parts[i].low &&
		    at < module->copy->parts[i].high)
			return true;
	return !module->copy;
}

enum tool_attach_code tool_attach_pointer_find(struct tool_attach_memory *memory,
					       const struct tool_attach_module *module, uint64_t pc,
					       bool is_exact, struct incstack_rule *rule)
{
	unsigned char code[INCSTACK__NATIVE_CALL_MOST];

	*rule = incstack__native_pointer_rule();
	if (is_exact)
		return TOOL_ATTACH_RULE;
	if (module && !is_code(module, pc - 1))
		return TOOL_ATTACH_NO_CALL;
	if (!read_code(memory, module, pc - sizeof(code), code, sizeof(code)))
		return TOOL_ATTACH_NO_RULE;
	return incstack__native_is_call(code) ? TOOL_ATTACH_RULE : TOOL_ATTACH_NO_CALL;
}

/* ---- interrupted code ------------------------------------------------------------------------- */

struct interrupted {
	struct tool_attach_memory *memory;
	const struct tool_attach_module *module;
	incstack__read_word *word;
	const void *stack;
};

static bool copy_code(void *context, uint64_t address, void *to, size_t bytes)
{
	const struct interrupted *in = context;

	return read_code(in->memory, in->module, address, to, bytes);
}

static bool copy_word(void *context, uint64_t address, uint64_t *to)
{
	const struct interrupted *in = context;

	return in->word(in->stack, NULL, address, to);
}

struct incstack_rule tool_attach_pointer_rule(struct tool_attach_memory *memory,
					      const struct tool_attach_module *module,
					      const struct cursor *at, incstack__read_word *word,
					      const void *stack)
{
	struct interrupted in = {memory, module, word, stack};
	const struct incstack__native_reader reader = {
		.context = &in, .code = copy_code, .word = copy_word};

	return incstack__native_pointer_rule_at(&reader, at->pc, at->sp);
}
