/* SPDX-License-Identifier: MIT
 *
 * Selective instrumentation of the VM's methods at run time: the embedding of incstack/instrument.h, and the record
 * of calls that its results are compared with.
 */
#ifndef TOYVM_INSTRUMENT_H
#define TOYVM_INSTRUMENT_H

#include <incstack/instrument.h>

#include "vm.h"

/* What schedule.instrument says. */
enum instrument {
	INSTRUMENT_NOTHING,
	INSTRUMENT_REACHABLE, /* scheme A */
	INSTRUMENT_CALLED,    /* scheme B */
	INSTRUMENT_RECEIVERS, /* scheme B, and only receivers that were seen */
};

/* All of these do nothing if nothing is instrumented. */
void instrument_open(struct vm *vm, uint64_t seed);
/* Compares the calls that were counted with the record. */
void instrument_close(struct vm *vm);
void instrument_fiber(struct fiber *f);
void instrument_fiber_end(struct fiber *f);
/* The fiber begins to run on a thread, or stops. */
void instrument_mounted(struct fiber *f, bool on);
void instrument_enter(struct fiber *f, struct method *m);
/* An instrumented method has run for the first time. */
void instrument_first_run(struct fiber *f, const struct method *m);
void instrument_exit(struct fiber *f, const struct method *m);
/* An exception was caught: f->shadow is that of the frame that goes on. */
void instrument_unwound(struct fiber *f);
/* A class gets an object, maybe its first one: only then it is loaded. */
void instrument_class(struct fiber *f, uint32_t class);
/* A native method calls a method by its number. */
void instrument_called(struct fiber *f, uint32_t method);
/* Looks whether a call within the subgraph was not reported. */
void instrument_look(struct fiber *f);
/* Adds or removes a root, or changes what is known of a method, at random. */
void instrument_random(struct fiber *f);

/* ---- calls.c: the record --------------------------------------------------------------------- */

struct calls;
struct calls *calls_new(void);
void calls_free(struct calls *calls);
/* Whether a call of the subgraph is open in the fiber, younger frames than the record's end not counted. */
bool calls_are_open(const struct fiber *f);
/* The youngest frame begins. It is marked if its call is within the subgraph. */
void calls_add(struct calls *calls, struct fiber *f, const struct method *m, bool is_root);
/* Returns the number of contexts that differ. */
uint64_t calls_compare(const struct calls *calls, const struct incstack_meter_snapshot *snapshot);

#endif
