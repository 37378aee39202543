/* SPDX-License-Identifier: MIT
 *
 * Starts the recorder: reads its configuration, makes the runtime and the shared
 * record, and decides what a forked child or a new process image records.
 */
#include <stdatomic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/system/libc.h"
#include "native/native.h"
#include "recorder/code/code.h"
#include "recorder/code/unruled.h"
#include "recorder/cpu/ticks.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* Returns the value of `name` in "name=value;name=value;file=anything", or -1. */
static long option(const char *configuration, const char *name, char *text, size_t size)
{
	const size_t length = strlen(name);
	const int rest = strcmp(name, "file") == 0;

	for (const char *at = configuration; at; at = strchr(at, ';')) {
		at += *at == ';';
		if (strncmp(at, name, length) != 0 || at[length] != '=')
			continue;
		if (text)
			snprintf(text, size, "%.*s", (int)strcspn(at + length + 1, rest ? "" : ";"),
				 at + length + 1);
		return atol(at + length + 1);
	}
	return -1;
}

static uint32_t mode_of(const char *name)
{
	if (strcmp(name, "full") == 0)
		return INCSTACK_MODE_FULL;
	return strcmp(name, "validate") == 0 ? INCSTACK_MODE_VALIDATE : INCSTACK_MODE_PATCH;
}

static enum incstack__check check_of(const char *name)
{
	if (strcmp(name, "own") == 0)
		return INCSTACK__CHECK_OWN;
	return strcmp(name, "libunwind") == 0 ? INCSTACK__CHECK_LIBUNWIND : INCSTACK__CHECK_NONE;
}

static const struct incstack__kind *kind_of(long number, bool is_wall)
{
	if (number != INCSTACK__TRACEFILE_OF_CPU)
		return &incstack__kind_heap;
	return is_wall ? &incstack__kind_wall : &incstack__kind_cpu;
}

static enum incstack__ticks_wanted ticks_of(const char *name)
{
	if (strcmp(name, "events") == 0)
		return INCSTACK__TICKS_OF_EVENTS;
	return strcmp(name, "timers") == 0 ? INCSTACK__TICKS_OF_TIMERS : INCSTACK__TICKS_OF_ANY;
}

static void configure(const char *configuration)
{
	struct incstack__recording *r = &incstack__recording;
	const long interval = option(configuration, "interval", NULL, 0);
	const char *seed = getenv("INCSTACK_SEED");
	char mode[16] = "patch";
	char crosscheck[16] = "";
	char ticks[16] = "";

	option(configuration, "file", r->file, sizeof(r->file));
	option(configuration, "mode", mode, sizeof(mode));
	option(configuration, "crosscheck", crosscheck, sizeof(crosscheck));
	incstack__kind = kind_of(option(configuration, "kind", NULL, 0),
				 option(configuration, "wall", NULL, 0) == 1);
	r->mode = incstack__native_mode(mode_of(mode));
	incstack__record_host_look();
	r->interval = interval > 0 ? (uint64_t)interval : 1;
	r->seed = seed ? strtoull(seed, NULL, 10) : 0;
	r->elapsed = option(configuration, "elapsed", NULL, 0) == 1;
	r->crosscheck = check_of(crosscheck);
	r->follow = option(configuration, "follow", NULL, 0) == 1;
	r->resident = option(configuration, "resident", NULL, 0) == 1;
	r->pid = incstack__kernel_getpid();
	option(configuration, "ticks", ticks, sizeof(ticks));
	r->ticks = ticks_of(ticks);
	incstack__kind->configured();
}

/* Makes a path from the plain name, the process number and the first free image number. */
static void numbered(char *path, size_t size)
{
	for (int image = 0;; image++) {
		snprintf(path, size, "%s.%ld.%d", incstack__recording.file,
			 (long)incstack__recording.pid, image);
		if (incstack__kernel_access(path, F_OK) != 0)
			return;
	}
}

/* Opens the trace file. The file of the process that the tool started has the plain name. If that
 * process executes another program, the new program gets the plain name, because the first program
 * was probably a wrapper. */
static int open_next(bool started_by_tool)
{
	struct incstack__recording *r = &incstack__recording;
	enum incstack__tracefile_note why;
	char path[sizeof(r->file) + 32];

	numbered(path, sizeof(path));
	if (!started_by_tool) {
		if (incstack__record_open(path) == 0)
			return 0;
		incstack__record_note_in(r->file, incstack__record_unrecorded(errno));
		return -1;
	}
	if (incstack__kernel_access(r->file, F_OK) != 0)
		return incstack__record_open(r->file);
	if (incstack__kernel_rename(r->file, path) != 0)
		return -1;
	incstack__spool_rename(r->file, path);
	if (incstack__record_open(r->file) == 0)
		return 0;
	why = incstack__record_unrecorded(errno);
	incstack__spool_rename(path, r->file);
	if (incstack__kernel_rename(path, r->file) == 0)
		incstack__record_note_in(r->file, why);
	return -1;
}

/* Adds the process number to the configuration in the environment, for the programs that this
 * process executes. The function writes to `environ` itself, because programs such as shells define
 * their own setenv. */
static void mark_environment(const char *configuration)
{
	static char entry[8192];
	const size_t length = strlen(INCSTACK__HEAP_VARIABLE);

	snprintf(entry, sizeof(entry), INCSTACK__HEAP_VARIABLE "=pid=%ld;%s",
		 (long)incstack__recording.pid, configuration);
	for (char **at = environ; *at; at++)
		if (strncmp(*at, entry, length) == 0 && (*at)[length] == '=')
			*at = entry;
}

static int create_runtime(void)
{
	static struct incstack_embedder embedder;
	struct incstack__recording *r = &incstack__recording;
	struct incstack_options options = {
		.size = sizeof(options),
		.embedder = &embedder,
		.mode = r->mode,
		.chunk_bytes = INCSTACK__CHUNK_BYTES,
	};

	embedder = *incstack_native_embedder();
	embedder.signals.find_rule = NULL;
	embedder.code.find_rule = incstack__record_find_rule;
	embedder.code.find_rule_quickly = incstack__record_find_rule;
	if (incstack__kind->samples_in_handlers)
		embedder.signals.find_rule = incstack__record_find_rule;
	embedder.code.returns_into = incstack__record_returns_into;
	embedder.memory.allocate = incstack__wiped_allocate;
	embedder.memory.release = incstack__wiped_release;
	embedder.memory.allocate_traces = incstack__spool_chunk;
	embedder.memory.release_traces = incstack__spool_chunk_release;
	return incstack_runtime_create(&options, &r->runtime);
}

/* Creates the shared record, which serves any stack and walks it fully. */
static int create_shared_record(void)
{
	struct incstack__recording *r = &incstack__recording;

	r->shared_record = incstack__spool_record();
	if (!r->shared_record)
		return -1;
	r->shared_record->high = UINTPTR_MAX;
	if (incstack_stack_create(r->runtime, 0, 0, &r->shared_record->stack) != 0 ||
	    incstack__record_prepare(r->shared_record, 0) != 0)
		return -1;
	incstack__record_publish(r->shared_record);
	return 0;
}

/* Creates everything that a recording needs, except its file and what the process already has. */
static int create_all(void)
{
	return create_runtime() != 0 || create_shared_record() != 0;
}

static void begin_again(const struct incstack__recording *parent)
{
	struct incstack__recording *r = &incstack__recording;

	r->fd = -1;
	r->pid = incstack__kernel_getpid();
	r->changes = 1;
	r->interval = parent->interval;
	r->seed = parent->seed;
	r->elapsed = parent->elapsed;
	r->mode = parent->mode;
	r->why = parent->why;
	r->crosscheck = parent->crosscheck;
	r->follow = parent->follow;
	r->resident = parent->resident;
	r->wiped = parent->wiped;
	r->epoch = parent->epoch;
	r->unloading = parent->unloading;
	r->counter = parent->counter;
	memcpy(r->file, parent->file, sizeof(r->file));
	if (open_next(0) != 0)
		return;
	if (create_all() != 0) {
		incstack__record_note(INCSTACK__NOTE_NOT_STARTED);
		return;
	}
	incstack_runtime_forked(r->runtime);
	incstack__native_walk_forked();
	incstack__record_check_start();
	atomic_store_explicit(&r->on, 1, memory_order_release);
	incstack__kind->begin();
}

__attribute__((visibility("default"))) incstack__recorder_start_fn incstack__recorder_start;

/* Whether an interpreter is told to take every object from malloc. */
static bool takes_all_from_malloc(void)
{
	const char *python = getenv("PYTHONMALLOC");
	const char *php = getenv("USE_ZEND_ALLOC");

	return (python && strncmp(python, "malloc", 6) == 0) || (php && strcmp(php, "0") == 0);
}

/* Called with signals blocked. */
static int start(const char *configuration, long starter)
{
	struct incstack__recording *r = &incstack__recording;

	if (r->file[0] == '\0' || open_next(starter <= 0 || starter == r->pid) != 0)
		return -1;
	/* The rules of that function find its caller by rbx, which a walk does not have. */
	if (getenv("LD_AUDIT"))
		incstack__record_note(INCSTACK__NOTE_AUDITED);
	if (takes_all_from_malloc())
		incstack__record_note(INCSTACK__NOTE_ALL_BY_MALLOC);
	if (r->crosscheck != INCSTACK__CHECK_NONE && incstack__record_libunwind() != 0) {
		incstack__record_note(INCSTACK__NOTE_NO_LIBUNWIND);
		return -1;
	}
	incstack__locks_make();
	if (incstack__record_watch_forks(begin_again) != 0 || incstack__record_keys() != 0 ||
	    create_all() != 0) {
		incstack__record_note(INCSTACK__NOTE_NOT_STARTED);
		return -1;
	}
	if (starter <= 0)
		mark_environment(configuration);
	return 0;
}

const struct incstack__recorder *
incstack__recorder_start(const char *configuration, const struct incstack__linker_view *before_load,
			 struct incstack__range stub)
{
	struct incstack__recording *r = &incstack__recording;
	const long starter = option(configuration, "pid", NULL, 0);
	struct incstack__protection before;
	int error;

	r->fd = -1;
	r->changes = 1;
	incstack__record_rule_stub(stub);
	incstack__clock_find();
	incstack__libc_find();
	configure(configuration);
	if (starter > 0 && starter != r->pid && !r->follow)
		return NULL;
	incstack__record_protect(&before);
	r->wiped = incstack__kernel_madvise(r, sizeof(*r), MADV_WIPEONFORK) == 0;
	error = start(configuration, starter);
	incstack__record_unprotect(&before);
	if (error != 0)
		return NULL;
	incstack__record_linker_begin(before_load);
	incstack__pools_close();
	incstack__record_modules();
	r->shared_record->epoch = r->shared_record->live.epoch = r->epoch;
	incstack__record_check_start();
	atomic_store_explicit(&r->on, 1, memory_order_release);
	incstack__kind->begin();
	return incstack__kind->table;
}
