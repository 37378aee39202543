/* SPDX-License-Identifier: MIT
 *
 * Starts the recorder: reads its configuration, makes the runtime and the shared
 * record, and decides what a forked child or a new process image records.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

struct incstack__recording incstack__recording = {.fd = -1};

static int find_rule_quickly(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (incstack__record_host_refuses(address)) {
		rule->kind = INCSTACK_RULE_NONE;
		return 0;
	}
	return incstack_native_embedder()->find_rule_quickly(context, address, rule);
}

/* libunwind may allocate: what it takes is ours, not the target's. */
static int find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	struct incstack__quiet before;
	int error;

	incstack__record_local.busy++;
	incstack__record_quiet(&before);
	error = incstack_native_find_rule(context, address, rule);
	incstack__record_loud(&before);
	incstack__record_local.busy--;
	return error;
}

/* The value of `name` in "name=value;name=value;file=anything", or -1. */
static long option(const char *configuration, const char *name, char *text, size_t size)
{
	const size_t length = strlen(name);
	const int rest = strcmp(name, "file") == 0;

	for (const char *at = configuration; at != NULL; at = strchr(at, ';')) {
		at += *at == ';';
		if (strncmp(at, name, length) != 0 || at[length] != '=')
			continue;
		if (text != NULL)
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

static void configure(const char *configuration)
{
	struct incstack__recording *r = &incstack__recording;
	const long interval = option(configuration, "interval", NULL, 0);
	char mode[16] = "patch";

	option(configuration, "file", r->file, sizeof(r->file));
	option(configuration, "mode", mode, sizeof(mode));
	r->mode = incstack_native_mode(mode_of(mode));
	incstack__record_host_look();
	incstack__record_host_allocators();
	r->interval = interval > 0 ? (uint64_t)interval : 1;
	r->crosscheck = option(configuration, "crosscheck", NULL, 0) == 1;
	r->follow = option(configuration, "follow", NULL, 0) == 1;
	r->pid = getpid();
}

/* The plain name and that of the process, with the first number that is free. */
static void numbered(char *path, size_t size)
{
	for (int image = 0;; image++) {
		snprintf(path, size, "%s.%ld.%d", incstack__recording.file,
			 (long)incstack__recording.pid, image);
		if (access(path, F_OK) != 0)
			return;
	}
}

/* The process that the tool started has the plain name, and when it executes another
 * program that one gets it: a wrapper makes room for the program that it starts. */
static int open_next(int started_by_tool)
{
	struct incstack__recording *r = &incstack__recording;
	char path[sizeof(r->file) + 32];

	numbered(path, sizeof(path));
	if (!started_by_tool) {
		if (incstack__record_open(path) == 0)
			return 0;
		incstack__record_note_in(r->file, INCSTACK__NOTE_UNRECORDED);
		return -1;
	}
	if (access(r->file, F_OK) != 0)
		return incstack__record_open(r->file);
	if (rename(r->file, path) != 0)
		return -1;
	if (incstack__record_open(r->file) == 0)
		return 0;
	if (rename(path, r->file) == 0)
		incstack__record_note_in(r->file, INCSTACK__NOTE_UNRECORDED);
	return -1;
}

/* Leaves word in the environment of whatever this process executes. The array is
 * written in place: targets such as shells define their own setenv. */
static void mark_environment(const char *configuration)
{
	static char entry[8192];
	const size_t length = strlen(INCSTACK__HEAP_VARIABLE);

	snprintf(entry, sizeof(entry), INCSTACK__HEAP_VARIABLE "=pid=%ld;%s",
		 (long)incstack__recording.pid, configuration);
	for (char **at = environ; *at != NULL; at++)
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
		.distance = INCSTACK_DISTANCE_ADAPTIVE,
	};

	embedder = *incstack_native_embedder();
	embedder.find_rule = find_rule;
	embedder.find_rule_quickly = find_rule_quickly;
	return incstack_runtime_create(&options, &r->runtime);
}

/* The shared record: any stack, walked fully. */
static int create_late(void)
{
	struct incstack__recording *r = &incstack__recording;

	r->late.high = UINTPTR_MAX;
	return incstack_stack_create_anywhere(r->runtime, &r->late.stack) != 0 ||
	       incstack__record_prepare(&r->late, 0) != 0;
}

/* What is open is written before the fork, so that the child has none of it. */
static void write_open(void)
{
	struct incstack__record *self;

	self = incstack__record_self();
	incstack__record_context_leave((uintptr_t)__builtin_frame_address(0));
	if (self != NULL)
		incstack__record_flush(self);
	incstack__record_contexts_flush(gettid(), 0, 0);
	if (incstack_stack_own(incstack__recording.late.stack) == 0)
		incstack__record_flush(&incstack__recording.late);
}

static void before_fork(void)
{
	const int on = incstack__recording.on;

	incstack__record_local.busy++;
	if (on)
		incstack__record_modules();
	pthread_mutex_lock(&incstack__recording.lock);
	if (on)
		write_open();
	incstack__record_modules_fork();
}

static void after_fork(void)
{
	incstack__record_modules_forked(0);
	pthread_mutex_unlock(&incstack__recording.lock);
	incstack__record_local.busy--;
}

static int make_lock(void)
{
	pthread_mutexattr_t recursive;

	return pthread_mutexattr_init(&recursive) != 0 ||
	       pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) != 0 ||
	       pthread_mutex_init(&incstack__recording.lock, &recursive) != 0;
}

/* The lock knows its owner by a thread number that the child does not have: it
 * cannot be unlocked here, only made anew. */
static void after_fork_child(void)
{
	struct incstack__recording *r = &incstack__recording;

	make_lock();
	if (!r->on) { /* in a sandbox, not even the file may be closed */
		incstack__record_local.busy--;
		return;
	}
	incstack__record_close();
	r->pid = getpid();
	if (!r->follow || open_next(0) != 0)
		r->on = 0;
	r->changes++;
	incstack__record_modules_forked(1);
	incstack__record_forked();
	incstack__record_local.busy--;
}

static int start_lock(void)
{
	return make_lock() || pthread_atfork(before_fork, after_fork, after_fork_child) != 0;
}

static const struct incstack__recorder table = {
	.on_alloc = incstack__record_alloc,
	.on_free = incstack__record_free,
	.on_new = incstack__record_new,
	.position = incstack__record_position,
	.on_thread = incstack__record_thread,
	.on_jump = incstack__record_jump,
	.on_thread_end = incstack__record_thread_end,
	.on_switch = incstack__record_switch,
	.on_unload = incstack__record_unload,
	.on_shown = incstack__record_shown,
	.on_walk = incstack__record_walk,
	.on_lookup = incstack__record_lookup,
	.real_address = incstack__record_real_address,
	.on_forbid = incstack__record_forbid,
	.on_close = incstack__record_on_close,
	.on_replace = incstack__record_on_replace,
	.on_exec = incstack__record_exec,
	.on_exit = incstack__record_exit,
};

__attribute__((visibility("default"))) incstack__recorder_start_fn incstack__recorder_start;

/* Signals are blocked. */
static int start(const char *configuration, long starter)
{
	struct incstack__recording *r = &incstack__recording;

	if (r->file[0] == '\0' || open_next(starter <= 0 || starter == r->pid) != 0)
		return -1;
	if (start_lock() != 0 || incstack__record_keys() != 0 || create_runtime() != 0 ||
	    create_late() != 0) {
		incstack__record_note(INCSTACK__NOTE_NOT_STARTED);
		return -1;
	}
	if (starter <= 0)
		mark_environment(configuration);
	return 0;
}

const struct incstack__recorder *incstack__recorder_start(const char *configuration)
{
	struct incstack__recording *r = &incstack__recording;
	const long starter = option(configuration, "pid", NULL, 0);
	struct incstack__quiet before;
	int error;

	configure(configuration);
	if (starter > 0 && starter != r->pid && !r->follow)
		return NULL;
	incstack__record_quiet(&before);
	error = start(configuration, starter);
	incstack__record_loud(&before);
	if (error != 0)
		return NULL;
	incstack__record_modules();
	r->late.epoch = r->epoch;
	__atomic_store_n(&r->on, 1, __ATOMIC_RELEASE);
	return &table;
}
