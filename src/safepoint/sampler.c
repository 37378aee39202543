/* SPDX-License-Identifier: MIT
 *
 * The sampler: one thread that starts a request, or a full safepoint, at each time of a grid of
 * absolute times (run, tick). Ticks are counted as requested or missed on this thread. Samples are
 * counted as taken by the thread that takes them (sample), and as wanted or lost where their
 * request ends (end_round). A missed tick counts the samples that it should have given as wanted
 * and lost (miss).
 */
#include <linux/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <incstack/sampler.h>

#include "prompt.h"
#include "safepoint.h"

#define NEVER_NS (UINT64_MAX / 2)
#define STOP_TIMEOUT_NS UINT64_C(1000000000)

/* The sampler's record of one request. It is in use from the request's tick to its end, which may
 * come after later ticks because an operation may take long. There are as many rounds as the
 * coordinator has requests. */
struct round {
	struct incstack_sampler *sampler;
	uint64_t due;
	_Atomic(bool) used;
};

struct counters {
	_Atomic(uint64_t) ticks, requested, late, missed, wanted, taken, lost, retrieves;
	_Atomic(uint64_t) real_time;
	_Atomic(uint64_t) latency[INCSTACK_SAMPLER_BUCKETS];
};

struct incstack_sampler {
	struct incstack_sampler_options options;
	pthread_t thread;
	uint32_t *alive;                  /* points to 0 in a child of fork */
	_Atomic(uint32_t) ending;         /* 1: the thread must end; it sleeps on this word */
	uint64_t due;                     /* the time of the next tick; only the thread uses it */
	_Atomic(uint32_t) open;           /* rounds in use; the ending thread sleeps on it */
	struct incstack_request *current; /* of the last tick; only the thread uses it */
	_Atomic(uint32_t) expected;       /* samples that a tick should give, as last seen */
	struct counters counters;
	struct round rounds[INCSTACK_WORD_REQUESTS];
};

/* relaxed: counters order nothing. */
static void count(_Atomic(uint64_t) *counter, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* ---- a sample, and the end of a request ------------------------------------------ */

static void sample(const struct incstack_ticket *ticket, void *argument)
{
	struct round *round = argument;
	struct incstack_sampler *sampler = round->sampler;
	uint64_t latency = ticket->time > round->due ? ticket->time - round->due : 1;
	int bucket = 63 - __builtin_clzll(latency);
	if (bucket >= INCSTACK_SAMPLER_BUCKETS)
		bucket = INCSTACK_SAMPLER_BUCKETS - 1;
	count(&sampler->counters.latency[bucket], 1);
	sampler->options.operation(ticket, sampler->options.argument);
	count(&sampler->counters.taken, 1);
}

static void end_round(struct round *round, uint32_t threads, uint32_t taken)
{
	struct incstack_sampler *sampler = round->sampler;
	uint32_t wanted = threads < sampler->options.n ? threads : sampler->options.n;
	count(&sampler->counters.wanted, wanted);
	count(&sampler->counters.lost, wanted > taken ? wanted - taken : 0);
	/* release: partners are the acquires of find_round and await_rounds. The sampler may be
	 * freed after the second operation; the wake-up uses only its address. */
	atomic_store_explicit(&round->used, false, memory_order_release);
	if (atomic_fetch_sub_explicit(&sampler->open, 1, memory_order_release) == 1)
		incstack__futex_wake(&sampler->open);
}

static void completed(struct incstack_request *request,
		      const struct incstack_request_result *result, void *argument)
{
	(void)request;
	end_round(argument, result->running + result->waiting, result->taken);
}

/* ---- ticks ------------------------------------------------------------------------- */

static struct round *find_round(struct incstack_sampler *sampler, uint64_t due)
{
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++) {
		struct round *round = &sampler->rounds[i];
		if (atomic_load_explicit(&round->used, memory_order_acquire))
			continue;
		round->due = due;
		/* relaxed: the start of the request publishes it. */
		atomic_store_explicit(&round->used, true, memory_order_relaxed);
		atomic_fetch_add_explicit(&sampler->open, 1, memory_order_relaxed);
		return round;
	}
	return NULL;
}

static void give_back(struct round *round)
{
	atomic_store_explicit(&round->used, false, memory_order_relaxed);
	atomic_fetch_sub_explicit(&round->sampler->open, 1, memory_order_relaxed);
}

/* relaxed: only a statistic. */
static void expect(struct incstack_sampler *sampler, uint32_t threads)
{
	atomic_store_explicit(&sampler->expected, threads, memory_order_relaxed);
}

static void close_current(struct incstack_sampler *sampler)
{
	struct incstack_request_result result = {.size = sizeof(result)};
	if (!sampler->current)
		return;
	incstack__request_expire(sampler->current);
	incstack__request_read(sampler->current, &result);
	expect(sampler, result.running + result.waiting);
	incstack_request_release(sampler->current);
	sampler->current = NULL;
}

static int request(struct incstack_sampler *sampler, struct round *round)
{
	const struct incstack_request_options options = {
		.size = sizeof(options),
		.n = sampler->options.n,
		.flags = sampler->options.flags & INCSTACK_SAMPLER_WAITING
				 ? INCSTACK_REQUEST_WAITING
				 : 0,
		.operation = sample,
		.completed = completed,
		.argument = round,
	};
	return incstack_request_start(sampler->options.safepoint, &options, &sampler->current);
}

static int stop_all(struct incstack_sampler *sampler, struct round *round)
{
	struct incstack_safepoint *safepoint = sampler->options.safepoint;
	uint32_t flags =
		sampler->options.flags & INCSTACK_SAMPLER_WAITING ? INCSTACK_REQUEST_WAITING : 0;
	int error =
		incstack_safepoint_stop(safepoint, NULL, sampler->options.stop_timeout_ns, NULL);
	if (error)
		return error;
	int taken = incstack__safepoint_run_operation(safepoint, sampler->options.n, flags, sample,
						      round);
	incstack_safepoint_resume(safepoint, NULL);
	expect(sampler, (uint32_t)taken);
	end_round(round, (uint32_t)taken, (uint32_t)taken);
	return 0;
}

static void miss(struct incstack_sampler *sampler, uint64_t ticks)
{
	uint32_t each = atomic_load_explicit(&sampler->expected, memory_order_relaxed);
	if (each > sampler->options.n)
		each = sampler->options.n;
	count(&sampler->counters.ticks, ticks);
	count(&sampler->counters.missed, ticks);
	count(&sampler->counters.wanted, ticks * each);
	count(&sampler->counters.lost, ticks * each);
}

/* Ticks that were due until now and got no request are missed. */
static void end_grid(struct incstack_sampler *sampler)
{
	uint64_t now = incstack__now();
	if (sampler->due <= now)
		miss(sampler, (now - sampler->due) / sampler->options.interval_ns + 1);
}

/* Takes the latest tick that is due: *due is its time, and *skipped is how many ticks before it
 * were skipped. Returns false if no tick is due. */
static bool take_tick(struct incstack_sampler *sampler, uint64_t *due, uint64_t *skipped)
{
	uint64_t now = incstack__now(), interval = sampler->options.interval_ns;
	if (sampler->due > now)
		return false;
	*skipped = (now - sampler->due) / interval;
	*due = sampler->due + *skipped * interval;
	sampler->due = *due + interval;
	return true;
}

static void tick(struct incstack_sampler *sampler, uint64_t due, uint64_t skipped)
{
	bool late = incstack__now() - due > sampler->options.interval_ns / 2;
	close_current(sampler);
	miss(sampler, skipped);
	struct round *round = find_round(sampler, due);
	bool full = sampler->options.flags & INCSTACK_SAMPLER_FULL;
	if (!round || (full ? stop_all(sampler, round) : request(sampler, round))) {
		if (round)
			give_back(round);
		miss(sampler, 1);
	} else {
		count(&sampler->counters.ticks, 1);
		count(&sampler->counters.requested, 1);
		count(&sampler->counters.late, late);
	}
}

static void retrieve(struct incstack_sampler *sampler)
{
	sampler->options.retrieve(sampler, sampler->options.argument);
	count(&sampler->counters.retrieves, 1);
}

/* The first time in the future of the grid that starts at `due`. */
static uint64_t next_due(uint64_t due, uint64_t interval)
{
	return due + ((incstack__now() - due) / interval + 1) * interval;
}

static void await_rounds(struct incstack_sampler *sampler)
{
	uint32_t open;
	while ((open = atomic_load_explicit(&sampler->open, memory_order_acquire)) != 0)
		incstack__futex_wait(&sampler->open, open, 0);
}

static void be_prompt(struct incstack_sampler *sampler)
{
	bool given = incstack__be_prompt(sampler->options.flags & INCSTACK_SAMPLER_REAL_TIME);
	atomic_store_explicit(&sampler->counters.real_time, given, memory_order_relaxed);
}

static void *run(void *argument)
{
	struct incstack_sampler *sampler = argument;
	uint64_t slower = sampler->options.retrieve_ns ? sampler->options.retrieve_ns : NEVER_NS;
	uint64_t retrieve_due = incstack__now() + slower;
	prctl(PR_SET_NAME, "incstack-sample");
	be_prompt(sampler);
	/* relaxed: the flag publishes nothing. */
	while (!atomic_load_explicit(&sampler->ending, memory_order_relaxed)) {
		uint64_t due, skipped;
		if (take_tick(sampler, &due, &skipped))
			tick(sampler, due, skipped);
		if (retrieve_due <= incstack__now()) {
			retrieve(sampler);
			retrieve_due = next_due(retrieve_due, slower);
		}
		/* The wait returns at once if the time has passed already, or if the thread must
		 * end. */
		incstack__futex_wait(&sampler->ending, 0,
				     sampler->due < retrieve_due ? sampler->due : retrieve_due);
	}
	end_grid(sampler);
	close_current(sampler);
	await_rounds(sampler);
	return NULL;
}

/* ---- the handle ---------------------------------------------------------------------- */

static bool valid(const struct incstack_sampler_options *options)
{
	const uint32_t flags =
		INCSTACK_SAMPLER_WAITING | INCSTACK_SAMPLER_FULL | INCSTACK_SAMPLER_REAL_TIME;
	return options && options->size == sizeof(*options) && options->safepoint &&
	       options->operation && options->interval_ns >= INCSTACK_SAMPLER_INTERVAL_MIN &&
	       !options->retrieve == !options->retrieve_ns && !(options->flags & ~flags) &&
	       options->n <= INT32_MAX;
}

static bool forked(const struct incstack_sampler *sampler)
{
	return *sampler->alive == 0;
}

/* Creates the thread with all signals blocked, so that it never handles the host's signals. */
static int create_thread(struct incstack_sampler *sampler)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&sampler->thread, NULL, run, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? INCSTACK_ENOMEM : 0;
}

static void release(struct incstack_sampler *sampler)
{
	incstack__alive_free(sampler->alive);
	free(sampler);
}

static int begin(struct incstack_sampler *sampler, const struct incstack_sampler_options *options)
{
	sampler->options = *options;
	if (!sampler->options.n) {
		long processors = sysconf(_SC_NPROCESSORS_ONLN);
		sampler->options.n = processors > 0 ? (uint32_t)processors : 1;
	}
	if (!sampler->options.stop_timeout_ns)
		sampler->options.stop_timeout_ns = STOP_TIMEOUT_NS;
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++)
		sampler->rounds[i].sampler = sampler;
	uint64_t now = incstack__now();
	sampler->due =
		options->interval_ns < NEVER_NS - now ? now + options->interval_ns : NEVER_NS;
	return create_thread(sampler);
}

int incstack_sampler_create(const struct incstack_sampler_options *options,
			    struct incstack_sampler **out)
{
	if (!out || !valid(options))
		return INCSTACK_EINVAL;
	struct incstack_sampler *sampler = calloc(1, sizeof(*sampler));
	if (!sampler)
		return INCSTACK_ENOMEM;
	sampler->alive = incstack__alive_make();
	int error = sampler->alive ? begin(sampler, options) : INCSTACK_ENOMEM;
	if (error)
		release(sampler);
	else
		*out = sampler;
	return error;
}

static uint64_t read_count(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void read_all(const struct incstack_sampler *sampler, struct incstack_sampler_stats *stats)
{
	const struct counters *counters = &sampler->counters;
	stats->ticks = read_count(&counters->ticks);
	stats->requested = read_count(&counters->requested);
	stats->late = read_count(&counters->late);
	stats->missed = read_count(&counters->missed);
	stats->wanted = read_count(&counters->wanted);
	stats->taken = read_count(&counters->taken);
	stats->lost = read_count(&counters->lost);
	stats->retrieves = read_count(&counters->retrieves);
	stats->real_time = read_count(&counters->real_time);
	for (int i = 0; i < INCSTACK_SAMPLER_BUCKETS; i++)
		stats->latency[i] = read_count(&counters->latency[i]);
}

int incstack_sampler_stats(const struct incstack_sampler *sampler,
			   struct incstack_sampler_stats *stats)
{
	if (!sampler || !stats || stats->size != sizeof(*stats))
		return INCSTACK_EINVAL;
	read_all(sampler, stats);
	return 0;
}

static void stop(struct incstack_sampler *sampler)
{
	atomic_store_explicit(&sampler->ending, 1, memory_order_relaxed);
	incstack__futex_wake(&sampler->ending);
	pthread_join(sampler->thread, NULL);
}

void incstack_sampler_destroy(struct incstack_sampler *sampler, struct incstack_sampler_stats *last)
{
	if (!sampler)
		return;
	if (!forked(sampler)) /* a child of fork has no thread */
		stop(sampler);
	if (last && last->size == sizeof(*last))
		read_all(sampler, last);
	release(sampler);
}
