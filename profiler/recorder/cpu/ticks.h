/* SPDX-License-Identifier: MIT
 *
 * CPU profiles: the timers, the kernel's events, the handler of their signals, and what serves them.
 */
#ifndef INCSTACK_RECORDER_TICKS_H
#define INCSTACK_RECORDER_TICKS_H

#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <incstack/incstack.h>

#include "interpose/preload.h"
#include "tracefile/format.h"
#include "tracefile/notes.h"
#include "tracefile/states.h"

struct incstack__record;

/* What makes the ticks. The start chooses one for the process and all its children. */
struct incstack__ticker {
	/* The handler of the timers' signal: so many of the timer's intervals have passed. */
	void (*on_timer)(uint64_t ticks, const void *ucontext);
	void (*begin)(void);                            /* in the thread that starts a recording */
	void (*start)(struct incstack__record *record); /* the calling thread's */
	void (*stop)(struct incstack__record *record);  /* of any thread */
	void (*serve)(struct incstack__record *record); /* where the recorder may call the kernel */
	void (*leave)(void);      /* the thread is about to execute a program */
	void (*restricted)(void); /* the program loads a seccomp filter */
	/* The program sets or reads the action of SIGTRAP. Returns whether that was done for it. */
	bool (*trap_action)(const struct sigaction *new, struct sigaction *old);
	void (*trap_wait)(void); /* the thread is about to wait for a SIGTRAP */
};
extern const struct incstack__ticker *incstack__ticker;
/* ticker.c */
void incstack__ticker_choose(void);
void incstack__ticker_begin(void); /* calls `begin`, after a note that there are no events */
extern const struct incstack__ticker incstack__ticker_timers; /* ticker_timers.c */
extern const struct incstack__ticker incstack__ticker_events; /* ticker_events.c */

/* tick.c: samples what a signal has interrupted. The sample stands for so many ticks, of which all but
 * the last count as `others`. */
void incstack__tick(uint64_t ticks, enum incstack__tick others, const void *ucontext);
/* For a signal after which no sample is due. */
void incstack__tick_none(const void *ucontext);

/* event.c: an event of the kernel that makes a thread trap whenever it has used CPU time for an interval.
 * The memory that the event is mapped to keeps it open, so it has no descriptor that the program could
 * see, close or run out of. Null: there is none, and errno says why. */
void *incstack__event_open(bool *sees_kernel);
/* The time between the traps of an event that does not see the kernel. It is shorter than the interval, because a
 * trap that is due in the kernel is left out. */
uint64_t incstack__event_period_of_user(void);
void incstack__event_close(void *event);
/* Returns whether the process may have events. If not, *why has the note for the report. */
bool incstack__events_permitted(bool wanted, enum incstack__tracefile_note *why);

/* trap.c: the handler of SIGTRAP, which calls `tick` for our events. */
bool incstack__trap_take(void (*tick)(const void *ucontext));
bool incstack__trap_is_ours(void); /* whether our handler is still the action */
/* As `trap_action` of the ticker. */
bool incstack__trap_action(const struct sigaction *new, struct sigaction *old);
/* Takes away a signal of our events that is pending because the thread blocks it. */
void incstack__trap_drain(void);
/* The thread executes a program: gives it the action that it would inherit without us. */
void incstack__trap_leave(void);
/* What a trap of our events carries. */
uint64_t incstack__trap_mark(void);

/* Takes a sample of the thread at a call, with a top frame that is in no handler, and stores ticks of a state. */
void incstack__tick_at_call(struct incstack__record *record, const struct incstack_top *top,
			    uint64_t ticks, enum incstack__state state);
/* Whether the batch must be written before another sample. */
bool incstack__tick_must_be_served(const struct incstack__record *record);
/* Returns CLOCK_MONOTONIC in ns. The vDSO reads the time-stamp counter, which the program may have forbidden; then it is
 * a number that grows. */
uint64_t incstack__tick_stamp(void);

/* cpu_kind.c: what every kind of recording has that takes ticks. */
/* The system calls of the timers: a list that ends with -1. The handler also returns by a system call. */
extern const int incstack__cpu_calls[];
void incstack__cpu_begin(void);
void incstack__cpu_restricted(void);
/* A thread without a record has no timer, so nobody samples its CPU time. */
void incstack__cpu_lack_record(void);
bool incstack__cpu_trap_action(const struct sigaction *new, struct sigaction *old);
void incstack__cpu_trap_wait(void);
/* No block is recorded, so it does not matter which blocks an allocator has recorded. */
uint64_t incstack__cpu_position(void);

#define INCSTACK__IN_CPU_TABLES \
	.on_alloc = incstack__serve_alloc, .on_free = incstack__serve_free, \
	.on_new = incstack__serve_new, .position = incstack__cpu_position, \
	.on_thread = incstack__serve_thread, .on_thread_begin = incstack__serve_thread, \
	.on_switch = incstack__serve_switch, .on_shown = incstack__serve_shown, \
	.on_exec = incstack__serve_exec, .on_trap_action = incstack__cpu_trap_action, \
	.on_trap_wait = incstack__cpu_trap_wait

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
 * changes the time between its ticks. */
void incstack__timer_start(struct incstack__record *record);
void incstack__timer_stop(struct incstack__record *record);
void incstack__timer_set(const struct incstack__record *record, uint64_t interval);
/* Reads the clock of the record's thread. */
uint64_t incstack__timer_clock(const struct incstack__record *record);
/* Whether another signal of a timer of elapsed time waits for the end of the handler. Called in the handler. */
bool incstack__timer_is_due(void);
/* If the timer counts elapsed time, the interrupted code gets a whole interval now, however long the
 * handlers take on this machine. */
void incstack__timer_let_run(const struct incstack__record *record);
/* Returns the CPU time of the record's thread while it was recorded. */
uint64_t incstack__timer_cpu_ns(const struct incstack__record *record);

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
void incstack__serve_exec(void);
/* Takes the signal of the ticks, and makes the record of the thread, with its timer. */
void incstack__serve_begin(void);

/* renew.c: writes the batch of a CPU profile and makes room for the next. The second function does so
 * in a handler, if that needs no allocation and no waiting. */
void incstack__renew(struct incstack__record *record);
void incstack__renew_in_handler(struct incstack__record *record);

#endif
