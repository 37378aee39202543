/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * The stack of one Java thread, as the library sees it: frames that HotSpot walks, and a
 * second kind of stack watermark as the return barrier. HotSpot compares the stack pointer with
 * a word of the thread at every return. The watermark puts a value there that lies between the
 * frame that will return and its caller.
 */
#ifndef SHARE_INCSTACK_INCSTACKTHREAD_HPP
#define SHARE_INCSTACK_INCSTACKTHREAD_HPP

#include "runtime/frame.hpp"
#include "runtime/stackWatermark.hpp"

#include <incstack/armed.h>
#include <incstack/incstack.h>
#include <incstack/methods.h>
#include <incstack/seen.h>
#include <incstack/tickets.h>

class IncStackThread : public StackWatermark
{
      public:
	/* The state of a thread, or null if it was never sampled. */
	static IncStackThread *of(JavaThread *thread);
	/* The state of a thread: the current one, or one that is stopped. Null if there is no
	 * memory. */
	static IncStackThread *make(JavaThread *thread);
	virtual ~IncStackThread();

	/* Takes a sample of the thread: the current one, or one that is stopped. Returns 0, an
	 * error of the library, or NoFrame: no Java frame is left. */
	enum { NoFrame = 1 };
	int sample(uint64_t id, uint64_t weight, bool is_full, bool is_checked);
	/* Completes the traces and hands them over; a tree may be null if there are no traces. The
	 * first tree has incremental traces, the second those of full walks. */
	int retrieve(struct incstack_tree **incremental, struct incstack_tree **full,
		     struct incstack__seen_result *checked);
	/* Adds the counters of both stacks to *sum. */
	void count(struct incstack_stats *sum) const;
	uint64_t not_retrieved() const;
	uint64_t skipped() const
	{
		return _skipped;
	}

	/* Called by the thread when HotSpot notices a return, an exception, or a frame that is
	 * about to be replaced. */
	virtual void before_unwind();
	virtual void after_unwind();

	/* ---- what the library asks, see embedder.h ------------------------------------------ */

	static int caller(void *context, void *identity, struct incstack_frame *at);
	static int arm(void *context, void *identity, uintptr_t name);
	static void disarm(void *context, void *identity, uintptr_t name);

      protected:
	virtual uint32_t epoch_id() const
	{
		return 0;
	}
	virtual void process(const frame &f, RegisterMap &map, void *context)
	{
	}
	virtual void start_processing_impl(void *context)
	{
	}
	virtual bool process_on_iteration()
	{
		return false;
	}

      private:
	/* Tells the library's functions which of the two stacks is meant. */
	struct Identity {
		IncStackThread *thread;
		bool has_barriers;
	};

	JavaThread *_thread;
	Identity _identity, _full_identity;
	struct incstack_stack *_stack, *_full;
	struct incstack__armed _armed;
	struct incstack__seen _seen;
	uint64_t _taken, _full_taken;         /* samples */
	uint64_t _retrieved, _full_retrieved; /* of them */
	uint64_t _skipped;                    /* armed frames that were found to be gone */

	explicit IncStackThread(JavaThread *thread);
	bool open();
	void expose(const frame &f);
	void set_watermark();
	void record(uint64_t sample);
	struct incstack_stack *ready(bool is_full, uintptr_t sp);
};

/* The runtimes of the library, and how frames are decoded (incStackFrames.cpp). */
class IncStackFrames : AllStatic
{
      public:
	/* Begins an operation on a stack, which the current thread owns from now on. Between two operations
	 * the code of a frame may be freed; within one it is not. */
	static void begin(struct incstack_stack *stack);
	static bool is_java(const frame &f);
	/* The first Java frame, or the entry frame if there is none. */
	static frame first_java_frame(JavaThread *thread, frame f);
	static frame rebuild(const struct incstack_frame &at);
	static void describe(const frame &f, uintptr_t name, struct incstack_frame *at);
	static int decode(void *context, const struct incstack_frame *at,
			  struct incstack_virtual_frame *out, int max);

	static struct incstack_runtime *incremental;
	/* Likewise, with the least barrier distance: for tests, since it intercepts most returns. */
	static struct incstack_runtime *intercepting;
	static struct incstack_runtime *full;
	static struct incstack__methods *methods;
	/* Creates the runtimes at the first use. Returns false if there is no memory. */
	static bool open();
};

#endif
