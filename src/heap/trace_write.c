/* SPDX-License-Identifier: MIT
 *
 * Encodes the blocks of a heap trace file; see trace_write.h.
 */
#include "trace_write.h"

#define VARINT_MAX 10
#define OBJECT_MAX (1 + 2 * VARINT_MAX)
#define TRACE_MAX (2 * VARINT_MAX)
/* Set in an object that already has its index, kept in its address field. */
#define OBJECT_WRITTEN (1u << 31)

struct cursor {
	unsigned char *at;
	unsigned char *end;
	uint64_t previous_pc;
	uint64_t next_index;
};

static void put_varint(struct cursor *cursor, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*cursor->at++ = (unsigned char)(value | 0x80);
	*cursor->at++ = (unsigned char)value;
}

/* Small differences of either sign become small numbers. */
static uint64_t zigzag(uint64_t difference)
{
	return (difference << 1) ^ (0 - (difference >> 63));
}

static int room_for(const struct cursor *cursor, size_t bytes)
{
	return (size_t)(cursor->end - cursor->at) >= bytes;
}

static unsigned char object_flags(uint32_t flags)
{
	unsigned out = 0;

	if (flags & INCSTACK_OBJECT_EXACT)
		out |= INCSTACK__TRACE_EXACT;
	if (flags & INCSTACK_OBJECT_BASE)
		out |= INCSTACK__TRACE_BASE;
	if (flags & INCSTACK_OBJECT_TRUNCATED)
		out |= INCSTACK__TRACE_TRUNCATED;
	if (flags & INCSTACK_OBJECT_SIGNAL)
		out |= INCSTACK__TRACE_SIGNAL;
	return (unsigned char)out;
}

static void put_parent(struct cursor *cursor, const struct incstack_frame_object *parent,
		       uint32_t flags, uint64_t index)
{
	const unsigned head = object_flags(flags);

	if (parent == NULL) {
		*cursor->at++ = (unsigned char)(head | INCSTACK__TRACE_PARENT_NONE);
	} else if (!(parent->flags & OBJECT_WRITTEN)) {
		*cursor->at++ = (unsigned char)(head | INCSTACK__TRACE_PARENT_NEXT);
	} else {
		*cursor->at++ = (unsigned char)(head | INCSTACK__TRACE_PARENT_BACK);
		put_varint(cursor, index - parent->address);
	}
}

static void put_object(struct cursor *cursor, struct incstack_frame_object *object)
{
	put_parent(cursor, object->parent, object->flags, cursor->next_index);
	put_varint(cursor, zigzag(object->method - cursor->previous_pc));
	cursor->previous_pc = object->method;
	object->address = cursor->next_index++;
	object->flags |= OBJECT_WRITTEN;
}

/* From the top outwards until an object that an earlier trace brought. */
static int put_run(struct cursor *cursor, const struct incstack_frame_object *top)
{
	const struct incstack_frame_object *object = top;

	for (; object != NULL && !(object->flags & OBJECT_WRITTEN); object = object->parent) {
		if (!room_for(cursor, OBJECT_MAX))
			return INCSTACK_ENOMEM;
		/* The tree is ours alone until it is released: scratch space. */
		put_object(cursor, (struct incstack_frame_object *)(uintptr_t)object);
	}
	return 0;
}

static int put_objects(struct cursor *cursor, const struct incstack_tree *tree)
{
	const struct incstack_trace *trace;
	int error = 0;

	for (trace = tree->traces; trace != NULL && error == 0; trace = trace->next)
		error = trace->top == NULL ? INCSTACK_EINVAL : put_run(cursor, trace->top);
	return error;
}

static int put_traces(struct cursor *cursor, const struct incstack_tree *tree, uint32_t *count)
{
	const struct incstack_trace *trace;

	for (trace = tree->traces; trace != NULL; trace = trace->next) {
		if (!room_for(cursor, TRACE_MAX))
			return INCSTACK_ENOMEM;
		put_varint(cursor, trace->top->address);
		put_varint(cursor, trace->weight);
		++*count;
	}
	return 0;
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
	uint64_t *words = incstack__trace_log_take(log, INCSTACK__TRACE_WIDE_BYTES);

	if (words == NULL)
		return INCSTACK_ENOMEM;
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
	return heads + event_bytes + tree->objects * OBJECT_MAX + tree->count * TRACE_MAX;
}

static int put_tree(struct cursor *cursor, const struct incstack_tree *tree,
		    struct incstack__trace_batch *batch)
{
	unsigned char *start = cursor->at;
	int error = put_objects(cursor, tree);

	if (error != 0)
		return error;
	batch->objects = (uint32_t)cursor->next_index;
	batch->object_bytes = (uint32_t)(cursor->at - start);
	start = cursor->at;
	error = put_traces(cursor, tree, &batch->traces);
	batch->trace_bytes = (uint32_t)(cursor->at - start);
	return error;
}

int64_t incstack__trace_batch(void *buffer, size_t size, uint32_t thread, uint32_t epoch,
			      const struct incstack_tree *tree, struct incstack__trace_log *log)
{
	struct incstack__trace_batch batch = {.epoch = epoch};
	unsigned char *data = buffer;
	struct cursor cursor;
	int error;

	if (buffer == NULL || log == NULL || log->used > log->size || log->used % 8 != 0)
		return INCSTACK_EINVAL;
	/* Checked before the tree is marked, so that the caller can come back. */
	if (size < incstack__trace_batch_bytes(tree, log->used))
		return INCSTACK_ENOMEM;
	if (size > INCSTACK__TRACE_BLOCK_MAX)
		size = INCSTACK__TRACE_BLOCK_MAX;
	cursor = (struct cursor){.at = data + sizeof(struct incstack__trace_block) + sizeof(batch),
				 .end = data + size};
	error = tree == NULL ? 0 : put_tree(&cursor, tree, &batch);
	if (error == 0 && !room_for(&cursor, log->used))
		error = INCSTACK_ENOMEM;
	if (error != 0)
		return error;
	batch.event_bytes = (uint32_t)log->used;
	if (log->used > 0)
		memcpy(cursor.at, log->data, log->used);
	incstack__trace_log_clear(log);
	memcpy(data + sizeof(struct incstack__trace_block), &batch, sizeof(batch));
	return finish_block(buffer, (size_t)(cursor.at - data) + batch.event_bytes,
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
