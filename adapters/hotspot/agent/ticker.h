/* SPDX-License-Identifier: MIT
 *
 * Wakes one thread at each time of a grid of absolute times.
 *
 * Two timers take turns, so that the next one is set already when a thread wakes up. Setting a timer
 * that is the first to expire writes a register of the processor, and in a virtual machine that write
 * leaves the machine, as each expiry does. With one timer both happen for each time. A timer that is
 * not the first costs a few instructions.
 *
 * The kernel gives a thread no more than its share of a processor. If 16 threads compute on each
 * processor, that is 6 %, but to wake up and sample every 0.1 ms takes 10 to 20 %. So several threads
 * should share a grid with short intervals, each with a ticker of its own.
 */
#ifndef AGENT_TICKER_H
#define AGENT_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct agent_ticker {
	int timers[2];        /* timerfd; each expires at every other time of the grid */
	uint64_t interval_ns; /* of the grid */
	uint64_t turn;        /* a time at which the first of them expires */
	bool works;           /* used by the thread that waits */
};

#define AGENT_TICKER_CLOSED ((struct agent_ticker){.timers = {-1, -1}})

enum { AGENT_TICKER_THREADS_MOST = 8 };

/* How many threads should take turns, if each time on the grid takes some 10 us. */
unsigned agent_ticker_threads(uint64_t interval_ns);

/* Creates the timers; if that fails, `works` is false. They are not set. */
void agent_ticker_open(struct agent_ticker *ticker);
void agent_ticker_close(struct agent_ticker *ticker);

/* Sets both timers for the grid of times with that interval that begins at `due` (CLOCK_MONOTONIC, ns). */
void agent_ticker_set(struct agent_ticker *ticker, uint64_t due, uint64_t interval_ns);

/* Waits until `due`, which is a time of the grid. It may return earlier. Clears `works` if the timers
 * cannot be read. */
void agent_ticker_wait(struct agent_ticker *ticker, uint64_t due);

/* Ends the wait, or the next one. Called by any thread. The timers must be set again afterwards. */
void agent_ticker_wake(const struct agent_ticker *ticker);

#endif
