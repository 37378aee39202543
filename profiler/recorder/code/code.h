/* SPDX-License-Identifier: MIT
 *
 * What the recorder knows of the code of the program: its modules and how they come and go, the
 * runtimes among them, the unwind rules.
 */
#ifndef INCSTACK_RECORDER_CODE_H
#define INCSTACK_RECORDER_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include <incstack/incstack.h>
#include <incstack/native.h>

#include "interpose/preload.h"
#include "recorder/recording/recording.h"

/* host.c */
/* Looks for what does not work with mode patch: hardware that guards return addresses, and
 * certain runtimes among the loaded objects. Returns true if the mode is validate now. */
bool incstack__record_host_look(void);
/* Leaves a note if the program defines malloc or operator new itself. */
void incstack__record_host_allocators(void);
/* Returns true if the mode is patch and the code belongs to one of these runtimes. Return
 * addresses into the runtime must not be changed. Takes no lock. */
bool incstack__record_host_forbids_barriers(uintptr_t address);
/* rule.c: the embedder's find_rule. Before its first call, the other function sets where the stub
 * is loaded. */
int incstack__record_find_rule(void *context, uintptr_t address, struct incstack_rule *rule);
void incstack__record_rule_stub(struct incstack__range stub);
/* Whether the object with the code needs no further check. May be called in a handler. */
bool incstack__record_host_knows(uintptr_t address);
/* Called after code was unloaded, because other code may be loaded in its place. */
void incstack__record_host_clear(void);
/* Changes mode patch to validate, in each thread before its next event. May be called in any
 * thread and in a signal handler. */
void incstack__record_fall_back(enum incstack__tracefile_note note);

/* unload.c */
/* Checks whether modules were loaded or unloaded. The caller holds no lock of the recorder. */
void incstack__record_modules(void);
void incstack__record_modules_unload(enum incstack__unload what, const void *address);
/* Returns the epoch number to be written for a batch that was recorded in `epoch`. Cuts off
 * frames that an unannounced unload has made doubtful, and adds their number to *truncated. */
uint32_t incstack__record_modules_settle(uint32_t epoch, const struct incstack_tree *tree,
					 uint64_t *truncated);
/* In the child of fork, whose file is open by then. */
void incstack__record_modules_forked(void);

/* linker.c: called before modules are checked for the first time. */
void incstack__record_linker_begin(const struct incstack__linker_view *before);

/* libunwind.c: loads libunwind, before one of its functions is called. Returns non-zero if it
 * cannot be loaded. */
int incstack__record_libunwind(void);

#endif
