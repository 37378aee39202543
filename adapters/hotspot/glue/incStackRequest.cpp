/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Requests for samples. A request sets a bit in the word of each running thread and arms its poll.
 * At the poll the thread draws a ticket and samples itself. HotSpot lets the requester run a
 * handshake for a thread that waits, so the requester samples waiting threads.
 */
#include "precompiled.hpp"
#include "incstack/incStack.hpp"
#include "incstack/incStackRequest.hpp"
#include "prims/jvmtiExport.hpp"
#include "runtime/atomic.hpp"
#include "runtime/handshake.hpp"
#include "runtime/interfaceSupport.inline.hpp"
#include "runtime/os.hpp"
#include "runtime/safepointMechanism.inline.hpp"
#include "runtime/thread.inline.hpp"
#include "runtime/vmOperations.hpp"
#include "runtime/vmThread.hpp"

#include "incstack/split.h"

static pthread_mutex_t Lock = PTHREAD_MUTEX_INITIALIZER;
static struct incstack__tickets Tickets;
static volatile bool Checking;
static struct incstack_jvmti_statistics Total; /* by atomic additions */

static uint64_t now()
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NANOUNITS + (uint64_t)t.tv_nsec;
}

static void add(uint64_t *counter, uint64_t n)
{
	Atomic::add(counter, n);
}

/* ---- sets of threads ---------------------------------------------------------------------- */

IncStackThreads::IncStackThreads(JavaThread *current, jint count, const jthread *threads)
    : _handle(current), _threads(NULL), _length(0), _is_named(count != 0), _error(JVMTI_ERROR_NONE)
{
	if (!_is_named)
		return;
	_threads = NEW_C_HEAP_ARRAY_RETURN_NULL(JavaThread *, count, mtInternal);
	if (_threads == NULL)
		_error = JVMTI_ERROR_OUT_OF_MEMORY;
	for (jint i = 0; i < count && _error == JVMTI_ERROR_NONE; i++) {
		JavaThread *thread;
		jvmtiError e = JvmtiExport::cv_external_thread_to_JavaThread(
			_handle.list(), threads[i], &thread, NULL);
		if (e == JVMTI_ERROR_NONE && !has(thread))
			_threads[_length++] = thread;
		else if (e == JVMTI_ERROR_INVALID_THREAD)
			_error = e;
	}
}

IncStackThreads::~IncStackThreads()
{
	FREE_C_HEAP_ARRAY(JavaThread *, _threads);
}

bool IncStackThreads::has(const JavaThread *thread) const
{
	for (uint32_t i = 0; i < _length; i++)
		if (_threads[i] == thread)
			return true;
	return false;
}

bool IncStackThreads::is_visible(JavaThread *thread)
{
	return !thread->is_exiting() && !thread->is_hidden_from_external_view() &&
	       thread->threadObj() != NULL;
}

/* ---- samples ------------------------------------------------------------------------------ */

void IncStackRequests::sample(JavaThread *thread, const struct incstack__request *request)
{
	if (!thread->has_last_Java_frame() || thread->is_terminated()) {
		add(&Total.empty, 1);
		return;
	}
	uint64_t time = now(), late = time > request->due ? time - request->due : 1;
	if (request->deadline != 0 && time > request->deadline) {
		add(&Tickets.lost_closed, 1);
		return;
	}
	IncStackThread *t = IncStackThread::make(thread);
	bool is_full = (request->flags & INCSTACK_JVMTI_FULL_WALK) != 0;
	int result = t == NULL ? INCSTACK_ENOMEM : t->sample(request->id, late, is_full, Checking);
	add(result == 0                         ? &Total.traces
	    : result == IncStackThread::NoFrame ? &Total.empty
						: &Total.lost_refused,
	    1);
}

/* Samples the thread that makes the request. It is not at a poll. So this function must store its
 * new watermark in the word with which returns are compared. */
static void sample_caller(JavaThread *current, const struct incstack__request *request)
{
	IncStackRequests::sample(current, request);
	SafepointMechanism::update_poll_values(current);
}

void IncStack::sample_at_poll(JavaThread *thread)
{
	uint64_t asked = Atomic::xchg(&thread->incstack_asked, (uint64_t)0);
	for (uint32_t place = 0; asked != 0; place++, asked >>= 1) {
		const struct incstack__request *request =
			asked & 1 ? incstack__tickets_draw(&Tickets, place) : NULL;
		if (request == NULL)
			continue;
		if (!thread->is_exiting())
			IncStackRequests::sample(thread, request);
		incstack__tickets_taken(&Tickets, place);
	}
}

/* Samples a thread that waits, or that has just begun to run. */
class IncStackSampleClosure : public HandshakeClosure
{
	const struct incstack__request *_request;

      public:
	explicit IncStackSampleClosure(const struct incstack__request *request)
	    : HandshakeClosure("IncStackSample"), _request(request)
	{
	}
	void do_thread(Thread *thread)
	{
		IncStackRequests::sample(thread->as_Java_thread(), _request);
	}
};

/* Samples the chosen threads, while all are stopped. */
class VM_IncStackSample : public VM_Operation
{
	JavaThread *const *_threads;
	uint32_t _count;
	const struct incstack__request *_request;

      public:
	VM_IncStackSample(JavaThread *const *threads, uint32_t count,
			  const struct incstack__request *request)
	    : _threads(threads), _count(count), _request(request)
	{
	}
	VMOp_Type type() const
	{
		return VMOp_GetAllStackTraces;
	}
	void doit()
	{
		for (uint32_t i = 0; i < _count; i++)
			if (!_threads[i]->is_exiting())
				IncStackRequests::sample(_threads[i], _request);
	}
};

/* ---- a request ---------------------------------------------------------------------------- */

/* Threads of the set that can be sampled: those that run, and those that wait if they are wanted, too.
 * A request comes every 100 us, and most threads wait. So it looks only at the state of those. */
class Groups : public StackObj
{
	static const uint32_t Few = 128;
	JavaThread *_few[Few], **_many;

	static bool waits_now(JavaThread *thread)
	{
		JavaThreadState state = thread->thread_state();
		return state == _thread_in_native || state == _thread_blocked;
	}
	/* Threads of agents run native code; they would draw tickets for nothing. */
	static bool is_meant(const IncStackThreads &threads, JavaThread *thread)
	{
		return threads.names(thread) || !thread->is_jvmti_agent_thread();
	}

      public:
	JavaThread **running, **waiting;
	uint32_t runs, waits;

	Groups(JavaThread *current, const IncStackThreads &threads, bool with_waiting)
	    : _many(NULL), running(_few), waiting(NULL), runs(0), waits(0)
	{
		uint32_t n = threads.length();
		if (with_waiting || n > Few) {
			running = _many =
				NEW_C_HEAP_ARRAY_RETURN_NULL(JavaThread *, 2 * n + 1, mtInternal);
			waiting = running == NULL ? NULL : running + n;
		}
		for (uint32_t i = 0; running != NULL && i < n; i++) {
			JavaThread *thread = threads.candidate(i);
			bool is_waiting = waits_now(thread);
			if ((is_waiting && !with_waiting) || thread == current ||
			    !IncStackThreads::is_visible(thread) || !is_meant(threads, thread))
				continue;
			if (is_waiting)
				waiting[waits++] = thread;
			else
				running[runs++] = thread;
		}
	}
	~Groups()
	{
		FREE_C_HEAP_ARRAY(JavaThread *, _many);
	}
};

/* Moves n threads, chosen at random, to the front. */
static void choose(JavaThread **threads, uint32_t count, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = i + (uint32_t)os::random() % (count - i);
		JavaThread *t = threads[i];
		threads[i] = threads[other];
		threads[other] = t;
	}
}

/* Arms the poll, unless HotSpot has armed it. The page comes first: a thread that polls it in
 * between polls again until the word is armed. In the other order, the page of a thread that has
 * processed the word already would stay armed. */
static void arm(JavaThread *thread)
{
	volatile uintptr_t *word =
		(volatile uintptr_t *)((address)thread +
				       in_bytes(JavaThread::polling_word_offset()));
	OrderAccess::release();
	thread->poll_data()->set_polling_page((uintptr_t)SafepointMechanism::get_polling_page());
	uintptr_t seen = Atomic::load(word), old;
	do
		old = seen;
	while (!(old & SafepointMechanism::poll_bit()) &&
	       (seen = Atomic::cmpxchg(word, old, IncStack::Armed)) != old);
}

bool IncStack::is_alone(JavaThread *thread)
{
	return thread->poll_data()->get_polling_word() == Armed;
}

/* Clears bits that threads have kept of requests that are closed. */
static void clear(const ThreadsList *all, uint64_t bits)
{
	for (uint i = 0; bits != 0 && i < all->length(); i++)
		if (Atomic::load(&all->thread_at(i)->incstack_asked) & bits)
			__atomic_fetch_and(&all->thread_at(i)->incstack_asked, ~bits,
					   __ATOMIC_SEQ_CST);
}

/* Asks the running threads for a sample. */
static void ask(const Groups &g, uint32_t place)
{
	for (uint32_t i = 0; i < g.runs; i++) {
		__atomic_fetch_or(&g.running[i]->incstack_asked, UINT64_C(1) << place,
				  __ATOMIC_SEQ_CST);
		arm(g.running[i]);
	}
}

/* Opens a request for n samples of the running threads. Returns its place, or -1. */
static int open_partial(const ThreadsList *all, const Groups &g,
			const struct incstack__request *request, uint64_t time, uint32_t n)
{
	uint64_t left;
	int place = 0;
	pthread_mutex_lock(&Lock);
	incstack__tickets_close_due(&Tickets, time);
	if (n > 0 && (place = incstack__tickets_find(&Tickets, &left)) >= 0) {
		clear(all, left);
		incstack__tickets_open(&Tickets, (uint32_t)place, request, n);
		ask(g, (uint32_t)place);
	}
	pthread_mutex_unlock(&Lock);
	return place;
}

/* Whether a thread that was asked may still draw a ticket. */
static bool is_pending(const ThreadsList *all, uint32_t place)
{
	for (uint i = 0; i < all->length(); i++)
		if (Atomic::load(&all->thread_at(i)->incstack_asked) >> place & 1 &&
		    !all->thread_at(i)->is_exiting())
			return true;
	return false;
}

static void wait(JavaThread *current, const ThreadsList *all, uint32_t place, uint64_t deadline)
{
	while (incstack__tickets_left(&Tickets, place) != 0 && is_pending(all, place) &&
	       (deadline == 0 || now() < deadline)) {
		ThreadBlockInVM blocked(current);
		os::naked_short_nanosleep(50 * 1000);
	}
}

static struct incstack__request request_of(const struct incstack_jvmti_request *asked,
					   uint64_t time)
{
	struct incstack__request r = {};
	r.id = (uint64_t)asked->id;
	r.due = asked->due == 0 ? time : asked->due;
	r.deadline = asked->deadline_ns == 0 ? 0 : time + asked->deadline_ns;
	r.flags = asked->flags;
	return r;
}

jvmtiError IncStackRequests::start(JavaThread *current, const IncStackThreads &threads,
				   const struct incstack_jvmti_request *asked,
				   struct incstack_jvmti_requested *requested)
{
	uint64_t time = now();
	struct incstack__request r = request_of(asked, time);
	Groups g(current, threads, (asked->flags & INCSTACK_JVMTI_WAITING) != 0);
	if (g.running == NULL)
		return JVMTI_ERROR_OUT_OF_MEMORY;
	uint32_t n = asked->n != 0 ? asked->n : (uint32_t)os::active_processor_count();
	uint32_t own = threads.names(current) ? 1 : 0;
	n -= own;
	uint32_t from_running = MIN2(n, g.runs), from_waiting = 0;
	if (asked->flags & INCSTACK_JVMTI_WAITING)
		incstack__split_for_both(g.runs, g.waits, n, &from_running, &from_waiting);
	uint64_t before = Atomic::load(&Total.traces) + Atomic::load(&Total.empty);
	if (own != 0)
		sample_caller(current, &r);
	choose(g.waiting, g.waits, from_waiting);
	if (asked->flags & INCSTACK_JVMTI_FULL_SAFEPOINT) {
		choose(g.running, g.runs, from_running);
		if (from_waiting > 0)
			memmove(g.running + from_running, g.waiting,
				from_waiting * sizeof(*g.waiting));
		VM_IncStackSample op(g.running, from_running + from_waiting, &r);
		VMThread::execute(&op);
	} else {
		int place = open_partial(threads.list(), g, &r, time, from_running);
		if (place < 0)
			return JVMTI_ERROR_NOT_AVAILABLE;
		IncStackSampleClosure closure(&r);
		for (uint32_t i = 0; i < from_waiting; i++)
			Handshake::execute(&closure, g.waiting[i]);
		if (asked->flags & INCSTACK_JVMTI_WAIT && from_running > 0)
			wait(current, threads.list(), (uint32_t)place, r.deadline);
	}
	add(&Total.requests, 1);
	add(&Total.wanted, own + from_running + from_waiting);
	if (requested != NULL) {
		requested->wanted = own + from_running + from_waiting;
		requested->taken = (uint32_t)MIN2(Atomic::load(&Total.traces) +
							  Atomic::load(&Total.empty) - before,
						  (uint64_t)requested->wanted);
		requested->traces = Atomic::load(&Total.traces);
		requested->running = g.runs;
		requested->waiting = g.waits;
	}
	return JVMTI_ERROR_NONE;
}

void IncStackRequests::set_check(bool on)
{
	Atomic::store(&Checking, on);
}

bool IncStackRequests::is_checking()
{
	return Atomic::load(&Checking);
}

void IncStackRequests::request_statistics(struct incstack_jvmti_statistics *s)
{
	uint64_t refused;
	s->requests = Atomic::load(&Total.requests);
	s->wanted = Atomic::load(&Total.wanted);
	s->traces = Atomic::load(&Total.traces);
	s->empty = Atomic::load(&Total.empty);
	s->lost_closed = Atomic::load(&Tickets.lost_closed);
	s->lost_refused = Atomic::load(&Total.lost_refused);
	incstack__methods_count(IncStackFrames::methods, &s->methods, &refused);
}
