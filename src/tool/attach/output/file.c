/* SPDX-License-Identifier: MIT
 *
 * Writes the trace file of a program that runs without the recorder. It has the same blocks as that of
 * a recorder: lists of modules, and batches of events and traces, each with a tally. The traces of a
 * thread share the frames that they have in common.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <incstack/incstack.h>

#include "file.h"
#include "tool/attach/process/ask.h"
#include "tool/names.h"
#include "tracefile/write.h"

/* The limits of a batch. */
enum { EVENT_BYTES = 32 << 10, TRACES = 2048, OBJECTS = 8 * TOOL_ATTACH_FRAMES };
enum {
	TALLY_BYTES =
		sizeof(struct incstack__tracefile_block) + sizeof(struct incstack__tracefile_tally)
};
enum { EVENT_MOST = INCSTACK__TRACEFILE_WIDE_BYTES + INCSTACK__TRACEFILE_WORD_BYTES };

/* Instead of a thread's number: ticks whose thread is not known, a thread that has ended. */
enum { UNKNOWN = 0, ENDED = -1 };

struct thread {
	struct thread *next;
	pid_t tid;
	uint32_t number;
	uint32_t serial;
	struct incstack__tracefile_log log;
	struct incstack__tracefile_tally tally;
	size_t object_count;
	size_t trace_count;
	/* The objects of the newest trace, the outermost first. */
	size_t known_count;
	struct incstack_frame_object *known[TOOL_ATTACH_FRAMES];
	struct incstack_frame_object objects[OBJECTS];
	struct incstack_trace traces[TRACES];
	uint64_t events[EVENT_BYTES / sizeof(uint64_t)];
};

struct tool_attach_file {
	char *path;
	pid_t pid;
	int fd;
	bool failed;
	uint64_t lists; /* bytes of all lists of modules */
	off_t end;
	uint32_t epoch;
	uint32_t numbers;
	uint64_t started; /* samples */
	uint64_t notes;
	struct thread *threads;
};

/* ---- writing ---------------------------------------------------------------------------- */

/* After an error nothing is written any more, because no block after it could be read. */
static void put(struct tool_attach_file *file, const void *data, size_t bytes, off_t at)
{
	const char *from = data;

	while (bytes > 0 && !file->failed) {
		const ssize_t done = pwrite(file->fd, from, bytes, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			fprintf(stderr, "incstack: cannot write %s: %s\n", tool_name(file->path),
				done < 0 ? strerror(errno) : "no space");
			file->failed = true;
			return;
		}
		from += done;
		at += done;
		bytes -= (size_t)done;
	}
}

static void append(struct tool_attach_file *file, const void *data, int64_t bytes)
{
	if (bytes <= 0)
		return;
	put(file, data, (size_t)bytes, file->end);
	file->end += bytes;
}

/* Writes how many samples were begun, which a reader compares with the traces that it finds. */
static void put_started(struct tool_attach_file *file)
{
	put(file, &file->started, sizeof(file->started),
	    INCSTACK__TRACEFILE_HEADER_BYTES +
		    offsetof(struct incstack__tracefile_slot, samples_started));
}

static void clear(struct thread *thread)
{
	incstack__tracefile_log_clear(&thread->log);
	thread->object_count = thread->trace_count = thread->known_count = 0;
}

/* Reads the name of a thread. One that has ended keeps the name that was read before. */
static void read_name(pid_t tid, char *name)
{
	char text[INCSTACK__TRACEFILE_NAME_BYTES] = {0};

	if (tool_attach_ask_facts(TOOL_ATTACH_THREAD_NAME, tid, text, sizeof(text)) == 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	memcpy(name, text, sizeof(text));
}

/* Writes the batch of a thread and its tally. */
static void flush(struct tool_attach_file *file, struct thread *thread, uint32_t flags)
{
	const struct incstack__tracefile_batch_of of = {thread->number, file->epoch,
							++thread->serial};
	const struct incstack_tree tree = {
		.traces = thread->trace_count > 0 ? thread->traces : NULL,
		.count = thread->trace_count,
		.objects = thread->object_count,
	};
	const size_t size = incstack__tracefile_batch_bytes(&tree, thread->log.used) + TALLY_BYTES;
	unsigned char *block = malloc(size);
	int64_t bytes;

	if (block == NULL) {
		fprintf(stderr, "incstack: out of memory\n");
		file->failed = true;
		return;
	}
	if (thread->trace_count > 0)
		thread->traces[thread->trace_count - 1].next = NULL;
	thread->tally.flags = flags;
	read_name(thread->tid, thread->tally.name);
	bytes = incstack__tracefile_batch(block, size, of, &thread->log, &tree);
	if (bytes > 0)
		bytes += incstack__tracefile_tally(block + bytes, size - (size_t)bytes,
						   thread->number, &thread->tally);
	append(file, block, bytes);
	put_started(file);
	free(block);
	clear(thread);
}

static void flush_all(struct tool_attach_file *file, uint32_t flags)
{
	for (struct thread *i = file->threads; i != NULL; i = i->next)
		if (flags != 0 || i->log.used > 0)
			flush(file, i, flags);
}

/* A process with many modules can change one of them all the time, and each change is a new list. */
static const uint64_t LISTS_MOST = UINT64_C(256) << 20;

bool tool_attach_file_modules(struct tool_attach_file *file, const struct tool_attach_space *space)
{
	struct incstack__tracefile_modules block;
	size_t count;
	const struct tool_attach_module *modules = tool_attach_space_modules(space, &count);
	size_t size = sizeof(struct incstack__tracefile_block) + 2 * sizeof(uint32_t);
	void *buffer;

	for (size_t i = 0; i < count; i++)
		size += sizeof(struct incstack__tracefile_module) + strlen(modules[i].path) +
			modules[i].identity.length;
	if (size > LISTS_MOST - file->lists)
		return false;
	file->lists += size;
	flush_all(file, 0);
	file->epoch += 2;
	buffer = malloc(size);
	if (buffer == NULL)
		return false;
	incstack__tracefile_modules_begin(&block, buffer, size, file->epoch);
	for (size_t i = 0; i < count; i++)
		incstack__tracefile_modules_add(&block, modules[i].path, modules[i].bias,
						modules[i].low, modules[i].high,
						&modules[i].identity);
	append(file, buffer, incstack__tracefile_modules_finish(&block, 0));
	free(buffer);
	return true;
}

/* ---- traces --------------------------------------------------------------------------------- */

static struct thread *add_thread(struct tool_attach_file *file, pid_t tid, uint32_t number)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (thread == NULL) {
		fprintf(stderr, "incstack: out of memory\n");
		file->failed = true;
		return NULL;
	}
	thread->tid = tid;
	thread->number = number;
	thread->tally.mode = INCSTACK_MODE_FULL;
	read_name(file->pid, thread->tally.name); /* one that ends soon keeps it */
	read_name(tid, thread->tally.name);
	incstack__tracefile_log_init(&thread->log, thread->events, sizeof(thread->events));
	thread->next = file->threads;
	file->threads = thread;
	return thread;
}

/* Takes the thread out of the list, or returns null. */
static struct thread *take_thread(struct tool_attach_file *file, pid_t tid)
{
	struct thread **at = &file->threads;
	struct thread *thread;

	while (*at != NULL && (*at)->tid != tid)
		at = &(*at)->next;
	thread = *at;
	if (thread != NULL)
		*at = thread->next;
	return thread;
}

/* Returns the thread, which is the first in the list from then on. */
static struct thread *thread_of(struct tool_attach_file *file, pid_t tid)
{
	struct thread *thread = take_thread(file, tid);

	if (thread == NULL)
		return add_thread(file, tid, tid == UNKNOWN ? 0 : ++file->numbers);
	thread->next = file->threads;
	file->threads = thread;
	return thread;
}

static bool is_object(const struct incstack_frame_object *object,
		      const struct tool_attach_frame *frame)
{
	return object->function == frame->pc && object->address == frame->address &&
	       object->flags == frame->flags;
}

/* Adds a trace. It shares the outer frames of the one before. Its top is always new. */
static void add_trace(struct thread *thread, const struct tool_attach_frame *frames, size_t count)
{
	struct incstack_trace *trace = &thread->traces[thread->trace_count++];
	size_t same = 0;

	while (same + 1 < count && same < thread->known_count &&
	       is_object(thread->known[same], &frames[count - 1 - same]))
		same++;
	for (size_t i = same; i < count; i++) {
		const struct tool_attach_frame *frame = &frames[count - 1 - i];
		struct incstack_frame_object *object = &thread->objects[thread->object_count++];

		*object = (struct incstack_frame_object){
			.parent = i > 0 ? thread->known[i - 1] : NULL,
			.function = frame->pc,
			.address = frame->address,
			.position = -1,
			.flags = frame->flags,
		};
		thread->known[i] = object;
	}
	thread->known_count = count;
	*trace = (struct incstack_trace){.next = trace + 1, .top = thread->known[count - 1]};
	thread->tally.samples++;
	thread->tally.truncated += (frames[count - 1].flags & INCSTACK_OBJECT_TRUNCATED) != 0;
}

/* Adds an event that is an allocation. Its trace, if it has one, comes next. */
static void add_event(struct thread *thread, uint64_t time, uint64_t pointer, uint64_t size,
		      enum incstack__tick what)
{
	incstack__tracefile_put_alloc(&thread->log, time, pointer, size,
				      what == INCSTACK__TICK_TAKEN ? thread->trace_count
								   : INCSTACK__TRACEFILE_NO_TRACE);
}

static bool has_room(const struct thread *thread, size_t count)
{
	return thread->log.size - thread->log.used >= EVENT_MOST && thread->trace_count < TRACES &&
	       OBJECTS - thread->object_count >= count;
}

/* Returns the thread with room for an event and a trace. */
static struct thread *thread_with_room(struct tool_attach_file *file, pid_t tid, size_t count)
{
	struct thread *thread = thread_of(file, tid);

	if (thread != NULL && !has_room(thread, count))
		flush(file, thread, 0);
	return thread;
}

/* Adds an event that counts as so many ticks, and its trace. */
static void add(struct tool_attach_file *file, const struct tool_attach_block *block,
		uint64_t ticks, enum incstack__tick what, const struct tool_attach_frame *frames,
		size_t count)
{
	struct thread *thread = thread_with_room(file, block->tid, count);

	if (thread == NULL)
		return;
	add_event(thread, block->time, block->pointer, block->bytes, what);
	thread->tally.ticks[what] += ticks;
	if (what != INCSTACK__TICK_TAKEN)
		return;
	file->started++;
	add_trace(thread, frames, count);
}

void tool_attach_file_alloc(struct tool_attach_file *file, const struct tool_attach_block *block,
			    enum incstack__tick what, const struct tool_attach_frame *frames,
			    size_t count)
{
	add(file, block, 1, what, frames, count);
}

/* Ticks are written as an allocation of as many bytes. */
void tool_attach_file_ticks(struct tool_attach_file *file, const struct tool_attach_block *block,
			    enum incstack__tick what, const struct tool_attach_frame *frames,
			    size_t count)
{
	add(file, block, block->bytes, what, frames, count);
}

void tool_attach_file_free_block(struct tool_attach_file *file, pid_t tid, uint64_t time,
				 uint64_t pointer)
{
	struct thread *thread = thread_with_room(file, tid, 0);

	if (thread != NULL)
		incstack__tracefile_put_free(&thread->log, time, pointer);
}

void tool_attach_file_count(struct tool_attach_file *file, enum incstack__tick what, uint64_t count)
{
	struct thread *thread = thread_of(file, UNKNOWN);

	if (thread != NULL)
		thread->tally.ticks[what] += count;
}

void tool_attach_file_dropped(struct tool_attach_file *file, uint64_t count)
{
	struct thread *thread = thread_of(file, UNKNOWN);

	if (thread != NULL)
		thread->tally.events_dropped += count;
}

void tool_attach_file_lost(struct tool_attach_file *file, uint64_t time, uint64_t count)
{
	struct thread *thread = thread_with_room(file, UNKNOWN, 0);

	if (thread == NULL)
		return;
	add_event(thread, time, 0, count, INCSTACK__TICK_NO_ROOM);
	thread->tally.ticks[INCSTACK__TICK_NO_ROOM] += count;
}

void tool_attach_file_note(struct tool_attach_file *file, unsigned note)
{
	file->notes |= UINT64_C(1) << note;
	put(file, &file->notes, sizeof(file->notes),
	    INCSTACK__TRACEFILE_HEADER_BYTES + offsetof(struct incstack__tracefile_slot, notes));
}

/* The last thread stays in the list, because its tally ends the file. */
void tool_attach_file_ended(struct tool_attach_file *file, pid_t tid)
{
	struct thread *thread = take_thread(file, tid);

	if (thread == NULL)
		return;
	flush(file, thread, 0);
	if (file->threads != NULL) {
		free(thread);
		return;
	}
	thread->tid = ENDED;
	thread->next = NULL;
	file->threads = thread;
}

/* ---- the file ----------------------------------------------------------------------------------- */

static void read_command(char *command, size_t size)
{
	const size_t got = tool_attach_ask_facts(TOOL_ATTACH_COMMAND, 0, command, size);

	for (size_t i = 0; i + 1 < got; i++)
		if (command[i] == '\0')
			command[i] = ' ';
	for (size_t end = strlen(command); end > 0 && command[end - 1] == ' '; end--)
		command[end - 1] = '\0'; /* some programs fill it up with blanks */
}

/* Returns the effective user of the process. */
static uint32_t owner_of_process(void)
{
	static const char field[] = "\nUid:";
	char status[4096];
	const char *at;
	char *end;

	tool_attach_ask_facts(TOOL_ATTACH_STATUS, 0, status, sizeof(status));
	at = strstr(status, field);
	if (at == NULL)
		return 0;
	strtoul(at + strlen(field), &end, 10); /* the real user */
	return (uint32_t)strtoul(end, NULL, 10);
}

/* Writes the program and its arguments, as many as there is room for. */
static void join(char **words, char *command, size_t size)
{
	size_t used = 0;

	command[0] = '\0';
	for (size_t i = 0; words[i] != NULL && used < size; i++)
		used += (size_t)snprintf(command + used, size - used, "%s%s", i > 0 ? " " : "",
					 words[i]);
}

static void write_header(struct tool_attach_file *file, const struct tool_record_options *options,
			 pid_t pid)
{
	static struct incstack__tracefile_header header;
	static const unsigned char counters[INCSTACK__TRACEFILE_COUNTERS_BYTES];
	char command[sizeof(header.command)];

	if (options->program[0] == NULL)
		read_command(command, sizeof(command));
	else
		join(options->program, command, sizeof(command));
	incstack__tracefile_header_init(&header, (uint64_t)pid,
					tool_record_now(CLOCK_REALTIME_COARSE), options->interval,
					INCSTACK_MODE_FULL, command);
	header.kind = options->kind;
	header.owner = owner_of_process();
	header.checksum = incstack__tracefile_header_sum(header);
	append(file, &header, sizeof(header));
	append(file, counters, sizeof(counters));
}

struct tool_attach_file *tool_attach_file_new(const struct tool_record_options *options, pid_t pid)
{
	struct tool_attach_file *file = calloc(1, sizeof(*file));

	if (file == NULL) {
		fprintf(stderr, "incstack: out of memory\n");
		return NULL;
	}
	file->pid = pid;
	file->fd = tool_attach_ask_output(&file->path);
	if (file->fd >= 0)
		write_header(file, options, pid);
	if (file->fd >= 0 && !file->failed)
		return file;
	tool_attach_file_free(file);
	return NULL;
}

bool tool_attach_file_failed(const struct tool_attach_file *file)
{
	return file->failed;
}

int tool_attach_file_end(struct tool_attach_file *file, uint64_t cpu_ns)
{
	if (file->threads == NULL)
		thread_of(file, UNKNOWN);
	if (file->threads == NULL)
		return -1;
	file->threads->tally.cpu_ns = cpu_ns; /* only the sum over all threads is known */
	flush_all(file, INCSTACK__TRACEFILE_TALLY_PROCESS);
	return file->failed ? -1 : 0;
}

void tool_attach_file_free(struct tool_attach_file *file)
{
	struct thread *next;

	for (struct thread *i = file->threads; i != NULL; i = next) {
		next = i->next;
		free(i);
	}
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}
