/* SPDX-License-Identifier: MIT
 *
 * Encodes the blocks of a trace file; see write.h. The functions for frame objects write runs: the
 * objects of a trace from its top outwards, up to an object that an earlier trace has written. Each
 * object is a head byte, the exclusive or of its pc and a guess, and a reference to its parent if
 * the parent is before the run (docs/trace-file.md).
 */
#include "write.h"

/* HEADS: the two heads of a batch. OBJECT_MAX: head byte, pc, parent. put_pc stores eight bytes of
 * each pc, even if the next object then overwrites some of them. GUESSES_ROOM is enough for the
 * guesses wherever the buffer ends. */
#define HEADS (sizeof(struct incstack__tracefile_block) + sizeof(struct incstack__tracefile_batch))
#define GUESSES_BYTES (INCSTACK__TRACEFILE_GUESSES * sizeof(uint64_t))
#define GUESSES_ROOM (GUESSES_BYTES + sizeof(uint64_t) - 1)
#define OBJECT_MAX (1 + sizeof(uint64_t) + sizeof(uint32_t))
/* The position of an object that is not written yet; afterwards the position is its index. */
#define NOT_WRITTEN (-1)

/* Where the next object goes. Passed by value, so that stores to the block cannot change it. */
struct cursor {
	unsigned char *at;
	uint64_t *guesses;
	uint64_t previous; /* selects the guess for the next pc */
	int32_t next_index;
};

/* Writes the head and the pc. Most guesses are right, or wrong in only a few bytes. No branch
 * depends on which is the case. */
static inline struct cursor put_pc(struct cursor to, unsigned head, uint64_t pc)
{
	uint64_t *guess = &to.guesses[incstack__tracefile_guess_index(to.previous)];
	const uint64_t difference = pc ^ *guess;
	/* The doubled difference plus one has one bit more than the difference, and is never 0. So
	 * the index of its highest bit is the number of bits of the difference. */
	const unsigned bits = (unsigned)__builtin_clzll(2 * difference + 1) ^ 63;
	unsigned code = (bits + 7) / 8;
	unsigned bytes = code;

	*guess = pc;
	to.previous = pc;
	if (__builtin_expect(difference >> 48 != 0, 0)) {
		code = INCSTACK__TRACEFILE_LENGTH_WIDE;
		bytes = sizeof(difference);
	}
	*to.at = (unsigned char)(head | code << INCSTACK__TRACEFILE_LENGTH_SHIFT);
	memcpy(to.at + 1, &difference, sizeof(difference));
	to.at += 1 + bytes;
	return to;
}

/* Completes the last object of a run, which was written at `head` and whose parent is before the
 * run. Writes how many objects back the parent is. */
static inline struct cursor put_back(struct cursor to, unsigned char *head,
				     const struct incstack_frame_object *parent)
{
	const uint32_t back = (uint32_t)(to.next_index - 1 - parent->position);
	const uint16_t near = (uint16_t)back;

	if (__builtin_expect(near == back, 1)) {
		*head |= INCSTACK__TRACEFILE_PARENT_NEAR;
		memcpy(to.at, &near, sizeof(near));
		to.at += sizeof(near);
	} else {
		*head |= INCSTACK__TRACEFILE_PARENT_BACK;
		memcpy(to.at, &back, sizeof(back));
		to.at += sizeof(back);
	}
	return to;
}

/* Returns the head of an object that has flags or no parent. put_back adds a reference back. */
static __attribute__((noinline)) unsigned unusual_head(const struct incstack_frame_object *object)
{
	unsigned head =
		(object->flags & INCSTACK_OBJECT_EXACT ? INCSTACK__TRACEFILE_EXACT : 0u) |
		(object->flags & INCSTACK_OBJECT_POINTER ? INCSTACK__TRACEFILE_POINTER : 0u);

	if (object->parent)
		return head;
	if (object->flags & INCSTACK_OBJECT_TRUNCATED)
		head |= INCSTACK__TRACEFILE_PARENT_TRUNCATED;
	else
		head |= object->flags & INCSTACK_OBJECT_BASE ? INCSTACK__TRACEFILE_PARENT_BASE
							     : INCSTACK__TRACEFILE_PARENT_NONE;
	return head;
}

/* Writes a run: the objects from `top` outwards, up to an object that an earlier trace has written.
 * The top is not written yet. Loads come before stores, because the
 * compiler must assume that the stores change what is loaded. */
static inline struct cursor put_run(struct cursor to, const struct incstack_frame_object *top)
{
	const uint32_t unusual = INCSTACK_OBJECT_EXACT | INCSTACK_OBJECT_POINTER;
	/* The tree belongs to the caller alone, so its objects may be changed. */
	struct incstack_frame_object *object = (struct incstack_frame_object *)(uintptr_t)top;

	for (;;) {
		const struct incstack_frame_object *parent = object->parent;
		const uint32_t flags = object->flags;
		const uint64_t pc = object->function;
		unsigned char *head = to.at;

		object->position = to.next_index++;
		if (__builtin_expect(!parent || (flags & unusual) != 0, 0)) {
			to = put_pc(to, unusual_head(object), pc);
			if (!parent)
				return to;
		} else {
			to = put_pc(to, INCSTACK__TRACEFILE_PARENT_NEXT, pc);
		}
		if (parent->position > NOT_WRITTEN)
			return put_back(to, head, parent);
		object = (struct incstack_frame_object *)(uintptr_t)parent;
	}
}

/* Writes a trace whose top, and so all of it, is written. */
static inline struct cursor put_repeated(struct cursor to, const struct incstack_frame_object *top)
{
	const uint32_t back = (uint32_t)(to.next_index - top->position);
	const unsigned bytes = back > UINT16_MAX ? sizeof(back) : sizeof(uint16_t);

	*to.at = (unsigned char)(INCSTACK__TRACEFILE_REPEATED |
				 bytes << INCSTACK__TRACEFILE_LENGTH_SHIFT);
	memcpy(to.at + 1, &back, sizeof(back));
	to.at += 1 + bytes;
	return to;
}

/* Writes all traces of a tree. Returns where they end. */
static const unsigned char *put_tree(unsigned char *at, uint64_t *guesses,
				     const struct incstack_tree *tree,
				     struct incstack__tracefile_batch *batch)
{
	struct cursor to = {.at = at, .guesses = guesses};
	uint64_t top = 0;

	memset(guesses, 0, GUESSES_BYTES);
	for (const struct incstack_trace *trace = tree->traces; trace; trace = trace->next) {
		batch->traces++;
		if (trace->top->position > NOT_WRITTEN) {
			to = put_repeated(to, trace->top);
			continue;
		}
		to.previous = ~top; /* the first pc of a run counts as following this value */
		top = trace->top->function;
		to = put_run(to, trace->top);
	}
	batch->objects = (uint32_t)to.next_index;
	batch->object_bytes = (uint32_t)(to.at - at);
	return to.at;
}

static int64_t finish_block(void *buffer, size_t bytes, uint32_t type, uint32_t thread)
{
	struct incstack__tracefile_block block = {
		.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC, .type = type, .thread = thread};
	unsigned char *payload = (unsigned char *)buffer + sizeof(block);

	if (bytes - sizeof(block) > INCSTACK__TRACEFILE_BLOCK_MAX)
		return INCSTACK_EINVAL;
	block.length = (uint32_t)(bytes - sizeof(block));
	block.checksum = incstack__tracefile_block_sum(block, payload);
	memcpy(buffer, &block, sizeof(block));
	return (int64_t)bytes;
}

int incstack__tracefile_header_init(struct incstack__tracefile_header *header, uint64_t pid,
				    uint64_t start_ns, uint64_t interval, uint32_t mode,
				    const char *command)
{
	size_t length;

	if (!header || !command)
		return INCSTACK_EINVAL;
	memset(header, 0, sizeof(*header));
	header->magic = INCSTACK__TRACEFILE_MAGIC;
	header->version = INCSTACK__TRACEFILE_VERSION;
	header->mode = mode;
	header->pid = pid;
	header->start_ns = start_ns;
	header->interval = interval;
	header->slots = INCSTACK__TRACEFILE_SLOTS;
	header->slot_bytes = INCSTACK__TRACEFILE_SLOT_BYTES;
	length = strnlen(command, sizeof(header->command) - 1);
	memcpy(header->command, command, length);
	header->checksum = incstack__tracefile_header_sum(*header);
	return 0;
}

void incstack__tracefile_put_time(struct incstack__tracefile_log *log, uint64_t stamp)
{
	const uint64_t word =
		(uint64_t)INCSTACK__TRACEFILE_TIME << INCSTACK__TRACEFILE_TIME_SHIFT | stamp;

	if (incstack__tracefile_log_fits(log, sizeof(word)) &&
	    stamp <= INCSTACK__TRACEFILE_TIME_MAX)
		incstack__tracefile_log_add(log, stamp, &word, sizeof(word));
}

static void put_wide(struct incstack__tracefile_log *log, uint64_t kind, uint64_t stamp,
		     uint64_t pointer, uint64_t size, uint64_t trace)
{
	const uint64_t words[] = {
		(uint64_t)INCSTACK__TRACEFILE_WIDE << INCSTACK__TRACEFILE_KIND_SHIFT | kind, stamp,
		pointer, size, trace};

	incstack__tracefile_log_add(log, stamp, words, sizeof(words));
}

static void put_pair(struct incstack__tracefile_log *log, uint64_t stamp, uint64_t pointer,
		     uint64_t size, uint64_t trace)
{
	const uint64_t words[] = {incstack__tracefile_event_word(INCSTACK__TRACEFILE_ALLOC,
								 stamp - log->stamp, pointer),
				  trace << INCSTACK__TRACEFILE_INDEX_SHIFT | size};

	incstack__tracefile_log_add(log, stamp, words, sizeof(words));
}

/* Whether pointer, size and trace fit into a form that is not wide. The stamp may still not fit. */
static bool is_narrow(uint64_t pointer, uint64_t size, uint64_t trace)
{
	return !(pointer >> INCSTACK__TRACEFILE_STAMP_SHIFT |
		 size >> INCSTACK__TRACEFILE_INDEX_SHIFT | trace >> INCSTACK__TRACEFILE_INDEX_BITS);
}

int incstack__tracefile_put_long(struct incstack__tracefile_log *log, uint64_t kind, uint64_t stamp,
				 uint64_t pointer, uint64_t size, uint64_t trace)
{
	const int late = stamp - log->stamp > INCSTACK__TRACEFILE_STAMP_MAX;

	if (!incstack__tracefile_log_fits(log, INCSTACK__TRACEFILE_WIDE_BYTES))
		return INCSTACK_ENOMEM;
	if (!is_narrow(pointer, size, kind == INCSTACK__TRACEFILE_FREE ? 0 : trace) ||
	    (late && stamp > INCSTACK__TRACEFILE_TIME_MAX)) {
		put_wide(log, kind, stamp, pointer, size, trace);
	} else {
		if (late)
			incstack__tracefile_put_time(log, stamp);
		if (kind == INCSTACK__TRACEFILE_FREE)
			return incstack__tracefile_put_free(log, stamp, pointer);
		put_pair(log, stamp, pointer, size, trace);
	}
	if (trace != INCSTACK__TRACEFILE_NO_TRACE)
		log->trace = trace + 1;
	return 0;
}

size_t incstack__tracefile_batch_bytes(const struct incstack_tree *tree, size_t event_bytes)
{
	const size_t events = HEADS + event_bytes;

	return !tree ? events : events + (tree->objects + tree->count) * OBJECT_MAX + GUESSES_ROOM;
}

/* How the events of a batch are divided into bytes that are copied (`first` and `rest`) and bytes
 * that are written from the log (`middle`). `first` ends where a unit of the checksum ends, and
 * `middle` consists of whole units, so that the checksum can be computed part by part. If there are
 * only a few events, all of them are `rest`. */
struct division {
	size_t first;
	size_t middle;
	size_t rest;
};

static struct division divide(size_t events)
{
	enum { UNIT = 32, FIRST = UNIT - sizeof(struct incstack__tracefile_batch) % UNIT };
	struct division d = {.rest = events};

	if (events >= FIRST + UNIT) {
		d.first = FIRST;
		d.middle = (events - FIRST) / UNIT * UNIT;
		d.rest -= d.first + d.middle;
	}
	return d;
}

/* Writes the contents of a batch behind its two heads, and sets the parts. With a middle part, the
 * first part is both heads and the `first` events. Without it, the first part is only the head of
 * the block. The last part is the rest of the block in the buffer. */
static struct incstack__tracefile_batch put_batch(unsigned char *block, uint64_t *guesses,
						  const struct incstack__tracefile_log *log,
						  const struct incstack_tree *tree,
						  struct division d, struct iovec *parts)
{
	struct incstack__tracefile_batch batch = {.event_bytes = (uint32_t)log->used};
	const size_t heads = d.first != 0 ? HEADS : sizeof(struct incstack__tracefile_block);
	unsigned char *at = block + HEADS + d.first;
	const unsigned char *end = at + d.rest;

	memcpy(block + HEADS, log->data, d.first);
	memcpy(at, log->data + d.first + d.middle, d.rest);
	if (tree)
		end = put_tree(at + d.rest, guesses, tree, &batch);
	parts[0] = (struct iovec){block, heads + d.first};
	parts[1] = (struct iovec){log->data + d.first, d.middle};
	parts[2] =
		(struct iovec){block + parts[0].iov_len, (size_t)(end - block) - parts[0].iov_len};
	return batch;
}

/* Fills in the two heads of a batch whose other contents are complete. Returns its size. */
static int64_t finish_batch(unsigned char *block, struct incstack__tracefile_batch_of of,
			    struct incstack__tracefile_batch batch, const struct iovec *parts)
{
	const size_t bytes = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
	struct incstack__tracefile_block head = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
						 .type = INCSTACK__TRACEFILE_BATCH,
						 .thread = of.thread};
	struct incstack__tracefile_sum sum;

	if (bytes - sizeof(head) > INCSTACK__TRACEFILE_BLOCK_MAX)
		return INCSTACK_EINVAL;
	head.length = (uint32_t)(bytes - sizeof(head));
	batch.epoch = of.epoch;
	batch.serial = of.serial;
	memcpy(block + sizeof(head), &batch, sizeof(batch));
	sum = incstack__tracefile_block_begin(head);
	sum = incstack__tracefile_sum_add(sum, block + sizeof(head),
					  parts[0].iov_len - sizeof(head));
	sum = incstack__tracefile_sum_add(sum, parts[1].iov_base, parts[1].iov_len);
	head.checksum = incstack__tracefile_sum_end(sum, parts[2].iov_base, parts[2].iov_len);
	memcpy(block, &head, sizeof(head));
	return (int64_t)bytes;
}

/* The guesses are at the end of the buffer. */
static uint64_t *guesses_in(unsigned char *buffer, size_t size)
{
	const uintptr_t at = (uintptr_t)(buffer + size) - GUESSES_BYTES;

	return (uint64_t *)(at & ~(uintptr_t)(sizeof(uint64_t) - 1));
}

static int64_t make_batch(void *buffer, size_t size, struct incstack__tracefile_batch_of of,
			  const struct incstack__tracefile_log *log,
			  const struct incstack_tree *tree, struct division d, struct iovec *parts)
{
	unsigned char *block = buffer;

	if (size < incstack__tracefile_batch_bytes(tree, log->used))
		return INCSTACK_ENOMEM;
	return finish_batch(block, of,
			    put_batch(block, guesses_in(block, size), log, tree, d, parts), parts);
}

static bool is_valid(const void *buffer, const struct incstack__tracefile_log *log)
{
	return buffer && log && log->data && log->used <= log->size && log->used % 8 == 0;
}

int64_t incstack__tracefile_batch(void *buffer, size_t size, struct incstack__tracefile_batch_of of,
				  const struct incstack__tracefile_log *log,
				  const struct incstack_tree *tree)
{
	struct iovec parts[INCSTACK__TRACEFILE_BATCH_PARTS];

	if (!is_valid(buffer, log))
		return INCSTACK_EINVAL;
	return make_batch(buffer, size, of, log, tree, (struct division){.rest = log->used}, parts);
}

int64_t incstack__tracefile_batch_parts(void *buffer, size_t size,
					struct incstack__tracefile_batch_of of,
					const struct incstack__tracefile_log *log,
					const struct incstack_tree *tree,
					struct iovec parts[INCSTACK__TRACEFILE_BATCH_PARTS])
{
	if (!is_valid(buffer, log))
		return INCSTACK_EINVAL;
	return make_batch(buffer, size, of, log, tree, divide(log->used), parts);
}

int incstack__tracefile_modules_begin(struct incstack__tracefile_modules *modules, void *buffer,
				      size_t size, uint32_t epoch)
{
	const size_t heads = sizeof(struct incstack__tracefile_block) + 2 * sizeof(uint32_t);

	if (!modules || !buffer)
		return INCSTACK_EINVAL;
	if (size < heads)
		return INCSTACK_ENOMEM;
	*modules = (struct incstack__tracefile_modules){
		.data = buffer, .size = size, .used = heads, .epoch = epoch};
	return 0;
}

int incstack__tracefile_modules_add(struct incstack__tracefile_modules *modules, const char *path,
				    uint64_t bias, uint64_t low, uint64_t high,
				    const struct incstack__identity *identity)
{
	static const struct incstack__identity unknown;
	struct incstack__tracefile_module module = {.bias = bias, .low = low, .high = high};
	unsigned char *to;
	size_t length;

	if (!modules || !modules->data || !path || low >= high)
		return INCSTACK_EINVAL;
	identity = identity ? identity : &unknown;
	length = strlen(path);
	if (modules->size - modules->used < sizeof(module) + length + identity->length)
		return INCSTACK_ENOMEM;
	module.path_length = (uint32_t)length;
	module.identity = identity->kind;
	module.identity_length = identity->length;
	to = modules->data + modules->used;
	memcpy(to, &module, sizeof(module));
	memcpy(to + sizeof(module), path, length);
	memcpy(to + sizeof(module) + length, identity->bytes, identity->length);
	modules->used += sizeof(module) + length + identity->length;
	modules->count++;
	return 0;
}

int64_t incstack__tracefile_modules_finish(struct incstack__tracefile_modules *modules,
					   uint32_t thread)
{
	uint32_t words[2];

	if (!modules || !modules->data)
		return INCSTACK_EINVAL;
	words[0] = modules->epoch;
	words[1] = modules->count;
	memcpy(modules->data + sizeof(struct incstack__tracefile_block), words, sizeof(words));
	return finish_block(modules->data, modules->used, INCSTACK__TRACEFILE_MODULES, thread);
}

int64_t incstack__tracefile_tally(void *buffer, size_t size, uint32_t thread,
				  const struct incstack__tracefile_tally *counters)
{
	const size_t bytes = sizeof(struct incstack__tracefile_block) + sizeof(*counters);

	if (!buffer || !counters)
		return INCSTACK_EINVAL;
	if (size < bytes)
		return INCSTACK_ENOMEM;
	memcpy((unsigned char *)buffer + sizeof(struct incstack__tracefile_block), counters,
	       sizeof(*counters));
	return finish_block(buffer, bytes, INCSTACK__TRACEFILE_TALLY, thread);
}
