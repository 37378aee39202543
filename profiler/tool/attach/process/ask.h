/* SPDX-License-Identifier: MIT
 *
 * What the worker, which reads the process without rights, asks the broker for, which has them.
 */
#ifndef INCSTACK_TOOL_ATTACH_ASK_H
#define INCSTACK_TOOL_ATTACH_ASK_H

#include <sys/types.h>

#include "mapping.h"
#include "tool/jail/jail.h"

/* The kinds of requests, with their numbers and texts. */
enum tool_attach_request {
	TOOL_ATTACH_REQUEST_FILE = 1, /* low, high, device, inode of a mapping; its path */
	TOOL_ATTACH_REQUEST_MAPS,
	TOOL_ATTACH_REQUEST_MEMORY,
	TOOL_ATTACH_REQUEST_FACTS,  /* an enum tool_attach_facts, a thread */
	TOOL_ATTACH_REQUEST_TASKS,  /* how many threads to skip */
	TOOL_ATTACH_REQUEST_OUTPUT, /* the trace file, once */
	TOOL_ATTACH_REQUEST_LET_GO, /* the program that is run begins */
	TOOL_ATTACH_REQUEST_SIGNAL, /* the number, for the program that is run */
	TOOL_ATTACH_REQUEST_PROBED, /* as FILE; the answer is a number of the file */
	TOOL_ATTACH_REQUEST_PROBE,  /* that number, offset, number of the probe, kind */
	TOOL_ATTACH_REQUEST_PROBES_OPEN,
	TOOL_ATTACH_REQUEST_PROBES_CLOSE,
	TOOL_ATTACH_REQUEST_CHILDREN, /* the answer: whether some have to wait */
	TOOL_ATTACH_REQUEST_PAGES,    /* an enum tool_attach_pages */
	TOOL_ATTACH_REQUESTS,
};

/* Files of /proc/PID about the pages of the process. */
enum tool_attach_pages { TOOL_ATTACH_PAGEMAP, TOOL_ATTACH_ROLLUP, TOOL_ATTACH_PAGES };

/* Small files of /proc/PID. */
enum tool_attach_facts {
	TOOL_ATTACH_COMMAND,
	TOOL_ATTACH_STATUS,
	TOOL_ATTACH_VECTOR,         /* the auxiliary one */
	TOOL_ATTACH_THREAD_NAME,    /* of a thread, as those that follow */
	TOOL_ATTACH_THREAD_CALL,    /* the system call in which it waits */
	TOOL_ATTACH_THREAD_NUMBERS, /* stat */
	TOOL_ATTACH_FACTS,
};

/* From now on the worker asks this broker. */
void tool_attach_ask_begin(const struct tool_jail *jail);
/* Opens the file of a mapping to be read. Returns a descriptor or -1. If `path` is not null, it gets a
 * name by which the tool can open the file, or null. */
int tool_attach_ask_file(const struct tool_attach_mapping *mapping, char **path);
/* Opens the list of the mappings, or the memory. Returns a descriptor or -1. */
int tool_attach_ask_maps(void);
int tool_attach_ask_memory(void);
int tool_attach_ask_pages(enum tool_attach_pages which);
/* Reads a small file as tool_proc_read() does. */
size_t tool_attach_ask_facts(enum tool_attach_facts what, pid_t tid, char *text, size_t size);
/* Whether the process has ended, or runs no code any more. */
bool tool_attach_ask_has_ended(void);
/* Calls a function for each thread that the process has now. */
void tool_attach_ask_threads(void (*call)(void *context, pid_t tid), void *context);
/* Makes the trace file. Returns a descriptor and its name, or -1 after a message. */
int tool_attach_ask_output(char **path);
void tool_attach_ask_let_go(void);
void tool_attach_ask_signal(int number);
/* Asks for a breakpoint in the file of a mapping, which begins with the others. Returns 0 or an error
 * number. */
int tool_attach_ask_probe(const struct tool_attach_mapping *mapping, uint64_t offset,
			  uint32_t number, unsigned kind);
/* Begins to report the hits. Returns 0 or an error number. */
int tool_attach_ask_probes(void);
void tool_attach_ask_no_probes(void);
/* Frees children that were forked from the breakpoints. Returns whether it must be asked for again. */
bool tool_attach_ask_children(void);

#endif
