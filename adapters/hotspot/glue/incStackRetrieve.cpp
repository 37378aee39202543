/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Retrieves the traces of threads, and counts what the samples of all threads have cost. Each
 * thread is held by a handshake only while its own stack is walked.
 */
#include "precompiled.hpp"
#include "classfile/javaClasses.hpp"
#include "incstack/incStackRequest.hpp"
#include "runtime/atomic.hpp"
#include "runtime/handshake.hpp"
#include "runtime/interfaceSupport.inline.hpp"
#include "runtime/jniHandles.hpp"
#include "runtime/safepointMechanism.inline.hpp"
#include "runtime/thread.inline.hpp"

static pthread_mutex_t Lock = PTHREAD_MUTEX_INITIALIZER;
/* The counters of threads that have ended; protected by Lock. */
static struct incstack_stats Ended;
static uint64_t EndedTraces, EndedSkipped;
/* Of all retrieves, by atomic additions. */
static uint64_t Compared, Mismatches, Skipped;
static uint32_t Told; /* mismatches that were described */
static const uint32_t TellMost = 20;

void IncStackRequests::thread_ends(const IncStackThread *thread)
{
	pthread_mutex_lock(&Lock);
	thread->count(&Ended);
	EndedTraces += thread->not_retrieved();
	EndedSkipped += thread->skipped();
	pthread_mutex_unlock(&Lock);
}

/* Runs the operation for the thread. For the current thread it runs directly; the thread may have a
 * new watermark afterwards. */
static void execute(JavaThread *current, HandshakeClosure *closure, JavaThread *thread)
{
	if (thread != current) {
		Handshake::execute(closure, thread);
		return;
	}
	closure->do_thread(thread);
	SafepointMechanism::update_poll_values(thread);
}

/* ---- retrieve ------------------------------------------------------------------------------ */

static void tell(const struct incstack__seen_result &r)
{
	if (Atomic::fetch_and_add(&Told, 1u) >= TellMost)
		return;
	fprintf(stderr,
		"incstack: sample %llu differs in frame %u: expected method %llu bci %d inlined "
		"%u, "
		"traced method %llu bci %d inlined %u\n",
		(unsigned long long)r.sample, r.frame, (unsigned long long)r.expected.method,
		r.expected.bci, r.expected.is_virtual, (unsigned long long)r.traced.method,
		r.traced.bci, r.traced.is_virtual);
}

class IncStackRetrieveClosure : public HandshakeClosure
{
      public:
	struct incstack_tree *trees[2];
	bool is_complete;

	IncStackRetrieveClosure() : HandshakeClosure("IncStackRetrieve"), is_complete(true)
	{
	}
	void do_thread(Thread *thread)
	{
		IncStackThread *t = IncStackThread::of(thread->as_Java_thread());
		if (t == NULL)
			return;
		struct incstack__seen_result r;
		is_complete = t->retrieve(&trees[0], &trees[1], &r) == 0;
		Atomic::add(&Compared, r.compared);
		Atomic::add(&Mismatches, r.mismatches);
		Atomic::add(&Skipped, r.skipped);
		if (r.mismatches != 0)
			tell(r);
	}
};

static void release(struct incstack_jvmti_traces *traces)
{
	for (size_t i = 0; i < traces->count; i++)
		incstack_tree_release(traces->threads[i].tree);
	os::free(traces);
}

jvmtiError IncStackRequests::release(struct incstack_jvmti_traces *traces)
{
	if (traces != NULL)
		::release(traces);
	return JVMTI_ERROR_NONE;
}

static void append(JavaThread *current, struct incstack_jvmti_traces *traces, JavaThread *thread,
		   struct incstack_tree *tree)
{
	if (tree == NULL)
		return;
	struct incstack_jvmti_thread_traces *t = &traces->threads[traces->count++];
	memset(t, 0, sizeof(*t));
	t->tree = tree;
	oop object = thread->threadObj();
	if (object != NULL) {
		t->thread = (jthread)JNIHandles::make_local(current, object);
		t->thread_id = java_lang_Thread::thread_id(object);
	}
}

jvmtiError IncStackRequests::retrieve(JavaThread *current, const IncStackThreads &threads,
				      struct incstack_jvmti_traces **traces)
{
	size_t bytes = sizeof(**traces) + 2 * (threads.length() + 1) * sizeof(*(*traces)->threads);
	struct incstack_jvmti_traces *all =
		(struct incstack_jvmti_traces *)os::malloc(bytes, mtInternal);
	if (all == NULL)
		return JVMTI_ERROR_OUT_OF_MEMORY;
	all->count = 0;
	all->threads = (struct incstack_jvmti_thread_traces *)(all + 1);
	bool is_complete = true;
	for (uint32_t i = 0; i < threads.length(); i++) {
		JavaThread *thread = threads.candidate(i);
		if (IncStackThread::of(thread) == NULL || !IncStackThreads::is_visible(thread))
			continue;
		IncStackRetrieveClosure closure;
		closure.trees[0] = closure.trees[1] = NULL;
		execute(current, &closure, thread);
		append(current, all, thread, closure.trees[0]);
		append(current, all, thread, closure.trees[1]);
		is_complete = is_complete && closure.is_complete;
	}
	if (!is_complete && all->count == 0) {
		::release(all);
		return JVMTI_ERROR_OUT_OF_MEMORY;
	}
	*traces = all;
	return JVMTI_ERROR_NONE;
}

/* ---- statistics ---------------------------------------------------------------------------- */

class IncStackCountClosure : public HandshakeClosure
{
      public:
	struct incstack_stats sum;
	uint64_t skipped;

	IncStackCountClosure() : HandshakeClosure("IncStackCount"), sum(), skipped(0)
	{
	}
	void do_thread(Thread *thread)
	{
		const IncStackThread *t = IncStackThread::of(thread->as_Java_thread());
		if (t == NULL)
			return;
		t->count(&sum);
		skipped += t->skipped();
	}
};

void IncStackRequests::statistics(JavaThread *current, struct incstack_jvmti_statistics *s)
{
	IncStackThreads threads(current, 0, NULL);
	IncStackCountClosure c;
	pthread_mutex_lock(&Lock);
	c.sum = Ended;
	c.skipped = EndedSkipped;
	s->lost_ended = EndedTraces;
	pthread_mutex_unlock(&Lock);
	for (uint32_t i = 0; i < threads.length(); i++)
		if (IncStackThread::of(threads.candidate(i)) != NULL &&
		    IncStackThreads::is_visible(threads.candidate(i)))
			execute(current, &c, threads.candidate(i));
	request_statistics(s);
	s->truncated = c.sum.truncated;
	s->returns = c.sum.returns;
	s->stale = c.sum.stale;
	s->walked = c.sum.walked;
	s->crosschecked = Atomic::load(&Compared);
	s->mismatches = Atomic::load(&Mismatches);
	s->skipped = Atomic::load(&Skipped) + c.skipped;
}
