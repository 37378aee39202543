/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Requests for samples: partial safepoints at HotSpot's polls, handshakes with waiting threads, and
 * the full safepoint for comparison.
 */
#ifndef SHARE_INCSTACK_INCSTACKREQUEST_HPP
#define SHARE_INCSTACK_INCSTACKREQUEST_HPP

#include "incstack/incStackThread.hpp"
#include "jvmtifiles/jvmti.h"
#include "runtime/threadSMR.hpp"

#include <incstack/incstack_jvmti.h>

/* A set of threads. A count of 0 means all threads. The caller is in the VM. */
class IncStackThreads : public StackObj
{
      public:
	IncStackThreads(JavaThread *current, jint count, const jthread *threads);
	~IncStackThreads();
	/* Whether the thread is one of those that the caller named. */
	bool names(const JavaThread *thread) const
	{
		return _is_named && has(thread);
	}
	/* JVMTI_ERROR_NONE, or the error in the arguments. */
	jvmtiError error() const
	{
		return _error;
	}
	uint32_t length() const
	{
		return _is_named ? _length : _handle.length();
	}
	/* A thread of the set, or one that is not visible. */
	JavaThread *candidate(uint32_t i) const
	{
		return _is_named ? _threads[i] : _handle.thread_at(i);
	}
	/* Whether JVMTI shows the thread. To ask this of a thread reads several lines of its memory. */
	static bool is_visible(JavaThread *thread);
	/* All threads of the JVM, whether in the set or not. */
	ThreadsList *list() const
	{
		return _handle.list();
	}

      private:
	ThreadsListHandle _handle;
	JavaThread **_threads; /* if they are named */
	uint32_t _length;
	bool _is_named;
	jvmtiError _error;

	bool has(const JavaThread *thread) const;
};

class IncStackRequests : AllStatic
{
      public:
	static jvmtiError start(JavaThread *current, const IncStackThreads &threads,
				const struct incstack_jvmti_request *request,
				struct incstack_jvmti_requested *requested);
	static jvmtiError retrieve(JavaThread *current, const IncStackThreads &threads,
				   struct incstack_jvmti_traces **traces);
	static void statistics(JavaThread *current, struct incstack_jvmti_statistics *statistics);
	static jvmtiError release(struct incstack_jvmti_traces *traces);
	static void set_check(bool on);
	static bool is_checking();
	/* Counts the traces and the counters of a thread that ends. */
	static void thread_ends(const IncStackThread *thread);
	/* The fields that concern requests. */
	static void request_statistics(struct incstack_jvmti_statistics *statistics);
	/* Takes a sample of the thread: the current one, or one that is stopped. */
	static void sample(JavaThread *thread, const struct incstack__request *request);
};

#endif
