/* SPDX-License-Identifier: MIT
 *
 * Encodes the blocks of a heap trace file; see trace_write.h.
 */
#include "trace_write.h"

/* Head, pc, parent; a pc is stored as a word, of which less may count. */
#define OBJECT_MAX (1 + sizeof(uint64_t) + sizeof(uint32_t))
/* In the bci of an object that is not written yet; later its index is there. */
#define NOT_WRITTEN (-1)

/* By value, so that the stores to the block cannot change it. */
struct cursor {
	unsigned char *at;
	uint64_t previous_pc;
	int32_t next_index;
};

/* How many bytes a number takes, less 1. */
static inline unsigned length_of(uint64_t number)
{
	return (unsigned)(__builtin_clzll(number | 1) ^ 63) / 8;
}

static inline unsigned flags_of(uint32_t flags)
{
	if (__builtin_expect((flags & (INCSTACK_OBJECT_EXACT | INCSTACK_OBJECT_SIGNAL)) == 0, 1))
		return 0;
	return (flags & INCSTACK_OBJECT_EXACT ? INCSTACK__TRACE_EXACT : 0u) |
	       (flags & INCSTACK_OBJECT_SIGNAL ? INCSTACK__TRACE_SIGNAL : 0u);
}

static inline unsigned where_parent(const struct incstack_frame_object *parent, uint32_t flags)
{
	if (__builtin_expect(parent != NULL, 1))
		return parent->bci > NOT_WRITTEN ? INCSTACK__TRACE_PARENT_BACK
						 : INCSTACK__TRACE_PARENT_NEXT;
	if (flags & INCSTACK_OBJECT_TRUNCATED)
		return INCSTACK__TRACE_PARENT_TRUNCATED;
	return flags & INCSTACK_OBJECT_BASE ? INCSTACK__TRACE_PARENT_BASE
					    : INCSTACK__TRACE_PARENT_NONE;
}

static inline struct cursor put_pc(struct cursor to, unsigned head, uint64_t pc)
{
	const uint64_t difference = pc ^ to.previous_pc;
	const unsigned length = length_of(difference);

	*to.at = (unsigned char)(head | length << INCSTACK__TRACE_LENGTH_SHIFT);
	memcpy(to.at + 1, &difference, sizeof(difference));
	to.at += 2 + length;
	to.previous_pc = pc;
	return to;
}

static inline struct cursor put_back(struct cursor to, const struct incstack_frame_object *parent)
{
	const uint32_t back = (uint32_t)(to.next_index - 1 - parent->bci);

	memcpy(to.at, &back, sizeof(back));
	to.at += sizeof(back);
	return to;
}

/* From the top outwards until an object that an earlier trace brought. The top is
 * written whether or not it is one, for each run is a trace. Loads come first, since
 * for all that the compiler knows the stores change what they read. */
static inline struct cursor put_run(struct cursor to, const struct incstack_frame_object *top)
{
	/* The tree is the caller's alone until it is released: scratch space. */
	struct incstack_frame_object *object = (struct incstack_frame_object *)(uintptr_t)top;

	for (;;) {
		const struct incstack_frame_object *parent = object->parent;
		const uint32_t flags = object->flags;
		const uint64_t pc = object->method;
		const unsigned where = where_parent(parent, flags);

		object->bci = to.next_index++;
		to = put_pc(to, flags_of(flags) | where, pc);
		if (where == INCSTACK__TRACE_PARENT_BACK)
			return put_back(to, parent);
		if (where != INCSTACK__TRACE_PARENT_NEXT)
			return to;
		object = (struct incstack_frame_object *)(uintptr_t)parent;
	}
}

/* Returns where it ends. */
static unsigned char *put_tree(unsigned char *at, const struct incstack_tree *tree,
			       struct incstack__trace_batch *batch)
{
	struct cursor to = {.at = at};

	for (const struct incstack_trace *trace = tree->traces; trace != NULL;
	     trace = trace->next) {
		to = put_run(to, trace->top);
		batch->traces++;
	}
	batch->objects = (uint32_t)to.next_index;
	batch->object_bytes = (uint32_t)(to.at - at);
	return to.at;
}

static int64_t finish_block(void *buffer, size_t bytes, uint32_t type, uint32_t thread)
{
	struct incstack__trace_block block = {
		.magic = INCSTACK__TRACE_BLOCK_MAGIC, .type = type, .thread = thread};
	unsigned char *payload = (unsigned char *)buffer + sizeof(block);

	if (bytes - sizeof(block) > INCSTACK__TRACE_BLOCK_MAX)
		return INCSTACK_EINVAL;
	block.length = (uint32_t)(bytes - sizeof(block));
	block.checksum = incstack__trace_block_sum(block, payload);
	memcpy(buffer, &block, sizeof(block));
	return (int64_t)bytes;
}

int incstack__trace_header_init(struct incstack__trace_header *header, uint64_t pid,
				uint64_t start_ns, uint64_t interval, uint32_t mode,
				const char *command)
{
	size_t length;

	if (header == NULL || command == NULL)
		return INCSTACK_EINVAL;
	memset(header, 0, sizeof(*header));
	header->magic = INCSTACK__TRACE_MAGIC;
	header->version = INCSTACK__TRACE_VERSION;
	header->mode = mode;
	header->pid = pid;
	header->start_ns = start_ns;
	header->interval = interval;
	header->slots = INCSTACK__TRACE_SLOTS;
	header->slot_bytes = INCSTACK__TRACE_SLOT_BYTES;
	length = strnlen(command, sizeof(header->command) - 1);
	memcpy(header->command, command, length);
	header->checksum = incstack__trace_header_sum(*header);
	return 0;
}

int incstack__trace_put_wide(struct incstack__trace_log *log, uint64_t kind, uint64_t stamp,
			     uint64_t pointer, uint64_t size, uint64_t trace)
{
	uint64_t *words;

	if (!incstack__trace_log_fits(log, INCSTACK__TRACE_WIDE_BYTES))
		return INCSTACK_ENOMEM;
	words = incstack__trace_log_take(log, INCSTACK__TRACE_WIDE_BYTES);
	log->stamp = stamp;
	words[0] = incstack__trace_event_word(INCSTACK__TRACE_WIDE, 0, kind);
	words[1] = stamp;
	words[2] = pointer;
	words[3] = size;
	words[4] = trace;
	return 0;
}

size_t incstack__trace_batch_bytes(const struct incstack_tree *tree, size_t event_bytes)
{
	const size_t heads =
		sizeof(struct incstack__trace_block) + sizeof(struct incstack__trace_batch);

	if (tree == NULL)
		return heads + event_bytes;
	return heads + event_bytes + (tree->objects + tree->count) * OBJECT_MAX;
}

int64_t incstack__trace_batch(void *buffer, size_t size, uint32_t thread, uint32_t epoch,
			      const struct incstack_tree *tree, struct incstack__trace_log *log)
{
	struct incstack__trace_batch batch = {.epoch = epoch};
	unsigned char *at = buffer;

	if (buffer == NULL || log == NULL || log->used > log->size || log->used % 8 != 0)
		return INCSTACK_EINVAL;
	/* Checked before the tree is marked, so that the caller can come back. */
	if (size < incstack__trace_batch_bytes(tree, log->used))
		return INCSTACK_ENOMEM;
	at += sizeof(struct incstack__trace_block) + sizeof(batch);
	if (tree != NULL)
		at = put_tree(at, tree, &batch);
	batch.event_bytes = (uint32_t)log->used;
	if (log->used > 0)
		memcpy(at, log->data, log->used);
	incstack__trace_log_clear(log);
	memcpy((unsigned char *)buffer + sizeof(struct incstack__trace_block), &batch,
	       sizeof(batch));
	return finish_block(buffer, (size_t)(at - (unsigned char *)buffer) + batch.event_bytes,
			    INCSTACK__TRACE_BATCH, thread);
}

int incstack__trace_modules_begin(struct incstack__trace_modules *modules, void *buffer,
				  size_t size, uint32_t epoch)
{
	const size_t heads = sizeof(struct incstack__trace_block) + 2 * sizeof(uint32_t);

	if (modules == NULL || buffer == NULL)
		return INCSTACK_EINVAL;
	if (size < heads)
		return INCSTACK_ENOMEM;
	*modules = (struct incstack__trace_modules){
		.data = buffer, .size = size, .used = heads, .epoch = epoch};
	return 0;
}

int incstack__trace_modules_add(struct incstack__trace_modules *modules, const char *path,
				uint64_t bias, uint64_t low, uint64_t high)
{
	struct incstack__trace_module module = {.bias = bias, .low = low, .high = high};
	size_t length;

	if (modules == NULL || modules->data == NULL || path == NULL || low >= high)
		return INCSTACK_EINVAL;
	length = strlen(path);
	if (modules->size - modules->used < sizeof(module) + length)
		return INCSTACK_ENOMEM;
	module.path_length = (uint32_t)length;
	memcpy(modules->data + modules->used, &module, sizeof(module));
	memcpy(modules->data + modules->used + sizeof(module), path, length);
	modules->used += sizeof(module) + length;
	modules->count++;
	return 0;
}

int64_t incstack__trace_modules_finish(struct incstack__trace_modules *modules, uint32_t thread)
{
	uint32_t words[2];

	if (modules == NULL || modules->data == NULL)
		return INCSTACK_EINVAL;
	words[0] = modules->epoch;
	words[1] = modules->count;
	memcpy(modules->data + sizeof(struct incstack__trace_block), words, sizeof(words));
	return finish_block(modules->data, modules->used, INCSTACK__TRACE_MODULES, thread);
}

int64_t incstack__trace_tally(void *buffer, size_t size, uint32_t thread,
			      const struct incstack__trace_tally *counters)
{
	const size_t bytes = sizeof(struct incstack__trace_block) + sizeof(*counters);

	if (buffer == NULL || counters == NULL)
		return INCSTACK_EINVAL;
	if (size < bytes)
		return INCSTACK_ENOMEM;
	memcpy((unsigned char *)buffer + sizeof(struct incstack__trace_block), counters,
	       sizeof(*counters));
	return finish_block(buffer, bytes, INCSTACK__TRACE_TALLY, thread);
}
