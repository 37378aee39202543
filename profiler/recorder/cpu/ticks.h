/* SPDX-License-Identifier: MIT
 *
 * CPU profiles: the timers, the handler of their signals, and what serves them.
 */
#ifndef INCSTACK_RECORDER_TICKS_H
#define INCSTACK_RECORDER_TICKS_H

#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <incstack/incstack.h>

#include "interpose/preload.h"
#include "tracefile/states.h"

struct incstack__record;

/* tick.c: the handler of a timer's signal. It samples what the signal has interrupted.
 * `ticks` of the timer have passed since the last signal. */
void incstack__tick(uint64_t ticks, const void *ucontext);

/* Takes a sample of the thread at a call, with a top frame that is in no handler, and stores ticks of a state. */
void incstack__tick_at_call(struct incstack__record *record, const struct incstack_top *top,
			    uint64_t ticks, enum incstack__state state);
/* Whether the batch must be written before another sample. */
bool incstack__tick_must_be_served(const struct incstack__record *record);
/* Returns CLOCK_MONOTONIC in ns. The vDSO reads the time-stamp counter, which the program may have forbidden; then it is
 * a number that grows. */
uint64_t incstack__tick_stamp(void);

/* cpu_kind.c */
/* The system calls of the timers: a list that ends with -1. The handler also returns by a system call. */
extern const int incstack__timer_calls[];
/* A thread without a record has no timer, so nobody samples its CPU time. */
void incstack__timer_note_lack(void);

/* wait.c: the waits of a wall-clock profile. */
void incstack__wait_begin(struct incstack__wait *wait, struct incstack__wait *outer);
bool incstack__wait_end(const struct incstack__wait *wait, const struct incstack__wait *outer);
/* The thread of the record is held, or has ended, and may be in a wait. */
void incstack__wait_held(struct incstack__record *record);

/* timer.c */
/* Installs our handler of the ticks' signal, which calls `tick`. Does nothing if it is installed
 * and libc has not replaced it. The caller holds the recording's lock, because flush_all (exit.c)
 * takes the same signal. */
int incstack__timer_signal(void (*tick)(uint64_t ticks, const void *ucontext));
/* The first starts the calling thread's timer. The second stops the timer of any record. The third
 * stops all timers. */
void incstack__timer_start(struct incstack__record *record);
void incstack__timer_stop(struct incstack__record *record);
void incstack__timers_stop(void); /* with the recording's lock */
/* Whether another signal of a timer of elapsed time waits for the end of the handler. Called in the handler. */
bool incstack__timer_is_due(void);
/* If the timer counts elapsed time, the interrupted code gets a whole interval now, however long the
 * handlers take on this machine. */
void incstack__timer_let_run(const struct incstack__record *record);
/* Returns the CPU time of the record's thread while it was recorded. */
uint64_t incstack__timer_cpu_ns(const struct incstack__record *record);
/* Returns the CPU time that the record's thread has used until now. */
uint64_t incstack__timer_used(const struct incstack__record *record);

/* serve.c: what ticks need and their handler must not do, done at the program's next call of
 * a function that the stub interposes. */
void incstack__serve_alloc(const void *block, size_t bytes, struct incstack__caller caller);
void incstack__serve_free(const void *block);
void incstack__serve_new(const void *block, size_t bytes, struct incstack__caller caller,
			 uint64_t position);
void incstack__serve_switch(const void *ucontext);
void incstack__serve_thread(void);
void incstack__serve_shown(uintptr_t *slot);
/* Serves the record, if it is not shared. */
void incstack__serve(struct incstack__record *record, void *unused);
/* Takes the signal of the ticks, and makes the record of the thread, with its timer. */
void incstack__serve_begin(void);

/* renew.c: writes the batch of a CPU profile and makes room for the next. The second function does so
 * in a handler, if that needs no allocation and no waiting. */
void incstack__renew(struct incstack__record *record);
void incstack__renew_in_handler(struct incstack__record *record);

#endif
