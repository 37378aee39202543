/* SPDX-License-Identifier: MIT
 *
 * Writes the trace file of a program that runs without the recorder. It has the same blocks as that of
 * a recorder: lists of modules, and batches of events and traces, each with a tally.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "tool/attach/process/ask.h"
#include "tool/names.h"

/* Instead of the id of a thread: ticks whose thread is not known, a thread that has ended. */
enum { UNKNOWN = 0, ENDED = -1 };

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
	struct tool_attach_log *newest;  /* the log that was used last */
	struct tool_attach_log *unknown; /* of unknown threads; null: nothing */
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
static void flush(struct tool_attach_file *file, struct tool_attach_log *log, uint32_t flags)
{
	int64_t bytes;
	void *batch;

	read_name(log->tid, log->tally.name);
	batch = tool_attach_log_batch(log, file->epoch, flags, &bytes);
	if (!batch) {
		fprintf(stderr, "incstack: out of memory\n");
		file->failed = true;
		return;
	}
	append(file, batch, bytes);
	put_started(file);
	free(batch);
}

static void flush_all(struct tool_attach_file *file, uint32_t flags)
{
	for (struct tool_attach_log *i = file->newest; i; i = i->older)
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
	if (!buffer)
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

/* ---- threads -------------------------------------------------------------------------------- */

static void link_log(struct tool_attach_file *file, struct tool_attach_log *log)
{
	log->newer = NULL;
	log->older = file->newest;
	if (log->older)
		log->older->newer = log;
	file->newest = log;
}

static void unlink_log(struct tool_attach_file *file, struct tool_attach_log *log)
{
	*(log->newer ? &log->newer->older : &file->newest) = log->older;
	if (log->older)
		log->older->newer = log->newer;
}

static struct tool_attach_log *add_log(struct tool_attach_file *file, pid_t tid, uint32_t number)
{
	struct tool_attach_log *log = tool_attach_log_new(tid, number);

	if (!log) {
		fprintf(stderr, "incstack: out of memory\n");
		file->failed = true;
		return NULL;
	}
	read_name(file->pid, log->tally.name); /* a thread that ends soon keeps it */
	read_name(tid, log->tally.name);
	link_log(file, log);
	return log;
}

/* Returns the log with room for an event and a trace. It is the newest log from then on. */
static struct tool_attach_log *use(struct tool_attach_file *file, struct tool_attach_log *log,
				   size_t count)
{
	if (file->newest != log) {
		unlink_log(file, log);
		link_log(file, log);
	}
	if (!tool_attach_log_has_room(log, count))
		flush(file, log, 0);
	return log;
}

/* Returns the log of a thread, with room for an event and a trace, or null after a message. */
static struct tool_attach_log *log_of(struct tool_attach_file *file,
				      struct tool_attach_thread *thread, size_t count)
{
	if (!thread->log)
		thread->log = add_log(file, thread->tid, ++file->numbers);
	return thread->log ? use(file, thread->log, count) : NULL;
}

static struct tool_attach_log *log_of_unknown(struct tool_attach_file *file)
{
	if (!file->unknown)
		file->unknown = add_log(file, UNKNOWN, 0);
	return file->unknown ? use(file, file->unknown, 0) : NULL;
}

/* Adds an event that counts as so many ticks. */
static void add(struct tool_attach_file *file, struct tool_attach_thread *thread,
		const struct tool_attach_block *block, uint64_t ticks)
{
	struct tool_attach_log *log = log_of(file, thread, thread->trace.count);

	if (!log)
		return;
	file->started += thread->trace.what == INCSTACK__TICK_TAKEN;
	tool_attach_log_alloc(log, block, ticks, &thread->trace);
}

void tool_attach_file_alloc(struct tool_attach_file *file, struct tool_attach_thread *thread,
			    const struct tool_attach_block *block)
{
	add(file, thread, block, 1);
}

/* Ticks are written as an allocation of as many bytes. */
void tool_attach_file_ticks(struct tool_attach_file *file, struct tool_attach_thread *thread,
			    uint64_t time, uint64_t ticks, enum incstack__state state)
{
	const struct tool_attach_block block = {
		.time = time, .pointer = incstack__state_pointer(state), .bytes = ticks};

	add(file, thread, &block, ticks);
}

void tool_attach_file_free_block(struct tool_attach_file *file, struct tool_attach_thread *thread,
				 uint64_t time, uint64_t pointer)
{
	struct tool_attach_log *log = log_of(file, thread, 0);

	if (log)
		incstack__tracefile_put_free(&log->log, time, pointer);
}

void tool_attach_file_count(struct tool_attach_file *file, enum incstack__tick what, uint64_t count)
{
	struct tool_attach_log *log = log_of_unknown(file);

	if (log)
		log->tally.ticks[what] += count;
}

void tool_attach_file_dropped(struct tool_attach_file *file, uint64_t count)
{
	struct tool_attach_log *log = log_of_unknown(file);

	if (log)
		log->tally.events_dropped += count;
}

void tool_attach_file_lost(struct tool_attach_file *file, uint64_t time, uint64_t count)
{
	const struct tool_attach_block block = {.time = time, .bytes = count};
	const struct tool_attach_trace none = {.what = INCSTACK__TICK_NO_ROOM};
	struct tool_attach_log *log = log_of_unknown(file);

	if (log)
		tool_attach_log_alloc(log, &block, count, &none);
}

void tool_attach_file_note(struct tool_attach_file *file, unsigned note)
{
	if (file->notes >> note & 1)
		return;
	file->notes |= UINT64_C(1) << note;
	put(file, &file->notes, sizeof(file->notes),
	    INCSTACK__TRACEFILE_HEADER_BYTES + offsetof(struct incstack__tracefile_slot, notes));
}

/* The last log stays in the list, because its tally ends the file. */
void tool_attach_file_ended(struct tool_attach_file *file, struct tool_attach_thread *thread)
{
	struct tool_attach_log *log = thread->log;

	if (!log)
		return;
	thread->log = NULL;
	unlink_log(file, log);
	flush(file, log, 0);
	if (file->newest) {
		free(log);
		return;
	}
	log->tid = ENDED;
	link_log(file, log);
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
	if (!at)
		return 0;
	strtoul(at + strlen(field), &end, 10); /* the real user */
	return (uint32_t)strtoul(end, NULL, 10);
}

/* Writes the program and its arguments, as many as there is room for. */
static void join(char **words, char *command, size_t size)
{
	size_t used = 0;

	command[0] = '\0';
	for (size_t i = 0; words[i] && used < size; i++)
		used += (size_t)snprintf(command + used, size - used, "%s%s", i > 0 ? " " : "",
					 words[i]);
}

static void write_header(struct tool_attach_file *file, const struct tool_record_options *options,
			 pid_t pid)
{
	static struct incstack__tracefile_header header;
	static const unsigned char counters[INCSTACK__TRACEFILE_COUNTERS_BYTES];
	char command[sizeof(header.command)];

	if (!options->program[0])
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

struct tool_attach_file *tool_attach_file_new(const struct tool_record_options *options, pid_t pid,
					      const struct tool_attach_space *space)
{
	struct tool_attach_file *file = calloc(1, sizeof(*file));

	if (!file) {
		fprintf(stderr, "incstack: out of memory\n");
		return NULL;
	}
	file->pid = pid;
	file->fd = tool_attach_ask_output(&file->path);
	if (file->fd >= 0)
		write_header(file, options, pid);
	if (file->fd >= 0 && !file->failed) {
		tool_attach_file_modules(file, space);
		return file;
	}
	tool_attach_file_free(file);
	return NULL;
}

bool tool_attach_file_failed(const struct tool_attach_file *file)
{
	return file->failed;
}

void tool_attach_file_block(struct tool_attach_file *file, const void *block, size_t bytes)
{
	append(file, block, (int64_t)bytes);
}

int tool_attach_file_end(struct tool_attach_file *file, uint64_t cpu_ns)
{
	if (!file->newest && !log_of_unknown(file))
		return -1;
	file->newest->tally.cpu_ns = cpu_ns; /* only the sum over all threads is known */
	flush_all(file, INCSTACK__TRACEFILE_TALLY_PROCESS);
	return file->failed ? -1 : 0;
}

void tool_attach_file_free(struct tool_attach_file *file)
{
	struct tool_attach_log *older;

	if (!file)
		return;
	for (struct tool_attach_log *i = file->newest; i; i = older) {
		older = i->older;
		free(i);
	}
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}
