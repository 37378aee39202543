/* SPDX-License-Identifier: MIT
 *
 * Two timers that wake a thread in turns; see ticker.h.
 */
#include "ticker.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"

/* Returns the number of the timer that expires at `due`. */
static unsigned turn_of(const struct agent_ticker *ticker, uint64_t due)
{
	return (due - ticker->turn) / ticker->interval_ns & 1;
}

unsigned agent_ticker_threads(uint64_t interval_ns)
{
	/* Between two wake-ups of a thread, which then takes some 2 % of a processor. */
	const uint64_t seldom_ns = 800000;
	const uint64_t threads = seldom_ns / interval_ns;

	if (threads > AGENT_TICKER_THREADS_MOST)
		return AGENT_TICKER_THREADS_MOST;
	return threads ? (unsigned)threads : 1;
}

void agent_ticker_open(struct agent_ticker *ticker)
{
	*ticker = (struct agent_ticker){.interval_ns = 0};
	for (unsigned i = 0; i < 2; i++)
		ticker->timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	ticker->works = ticker->timers[0] >= 0 && ticker->timers[1] >= 0;
}

void agent_ticker_close(struct agent_ticker *ticker)
{
	for (unsigned i = 0; i < 2; i++)
		if (ticker->timers[i] >= 0)
			close(ticker->timers[i]);
	*ticker = AGENT_TICKER_CLOSED;
}

void agent_ticker_set(struct agent_ticker *ticker, uint64_t due, uint64_t interval_ns)
{
	ticker->turn = due;
	ticker->interval_ns = interval_ns;
	for (unsigned i = 0; i < 2 && ticker->works; i++) {
		const struct itimerspec times = {
			.it_value = agent_timespec(due + i * ticker->interval_ns),
			.it_interval = agent_timespec(2 * ticker->interval_ns),
		};
		ticker->works =
			!timerfd_settime(ticker->timers[i], TFD_TIMER_ABSTIME, &times, NULL);
	}
}

/* A timer that has expired before is read without a wait, and expires again at its next turn. */
void agent_ticker_wait(struct agent_ticker *ticker, uint64_t due)
{
	uint64_t expiries;

	if (read(ticker->timers[turn_of(ticker, due)], &expiries, sizeof(expiries)) < 0 &&
	    errno != EINTR)
		ticker->works = false;
}

void agent_ticker_wake(const struct agent_ticker *ticker)
{
	const struct itimerspec now = {
		.it_value.tv_nsec = 1,
		.it_interval = agent_timespec(2 * ticker->interval_ns),
	};

	for (unsigned i = 0; i < 2; i++)
		(void)timerfd_settime(ticker->timers[i], 0, &now, NULL);
}
