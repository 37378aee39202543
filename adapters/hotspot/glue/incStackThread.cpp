/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Samples of one Java thread, and the returns that its watermark intercepts.
 */
#include "precompiled.hpp"
#include "code/codeBlob.hpp"
#include "incstack/incStackRequest.hpp"
#include "incstack/incStackThread.hpp"
#include "runtime/atomic.hpp"
#include "runtime/frame.inline.hpp"
#include "runtime/registerMap.hpp"
#include "runtime/stackWatermarkSet.inline.hpp"
#include "runtime/thread.inline.hpp"
#include "runtime/vframe.inline.hpp"

static const StackWatermarkKind Kind = static_cast<StackWatermarkKind>(1);

/* The stack pointer of the callee of a frame, compared at its return, is 8 or 16 bytes below
 * the stack pointer of that frame; that of any younger frame is at least 24 bytes below. */
static const uintptr_t Below = 3 * sizeof(intptr_t);

static const uint32_t ArmedSpare = 16;
static const size_t Room = 16 * K;

IncStackThread::IncStackThread(JavaThread *thread)
    : StackWatermark(thread, Kind, 0),
      _thread(thread), _identity{this, true}, _full_identity{this, false}, _stack(NULL),
      _full(NULL), _armed(), _taken(0), _full_taken(0), _retrieved(0), _full_retrieved(0),
      _skipped(0)
{
	incstack__seen_init(&_seen);
}

/* Returns the runtime of the next thread. While traces are checked, every other thread intercepts as
 * many returns as possible. */
static struct incstack_runtime *runtime_of_next()
{
	static uint32_t count;
	return IncStackRequests::is_checking() && Atomic::fetch_and_add(&count, 1u) % 2 == 0
		       ? IncStackFrames::intercepting
		       : IncStackFrames::incremental;
}

bool IncStackThread::open()
{
	static const struct incstack_stack_walker walker = {sizeof(walker), caller, arm, disarm,
							    NULL};
	return incstack_stack_create_embedder(runtime_of_next(), &walker, &_identity, &_stack) ==
		       0 &&
	       incstack_stack_create_embedder(IncStackFrames::full, &walker, &_full_identity,
					      &_full) == 0;
}

IncStackThread *IncStackThread::of(JavaThread *thread)
{
	return StackWatermarkSet::get<IncStackThread>(thread, Kind);
}

IncStackThread *IncStackThread::make(JavaThread *thread)
{
	IncStackThread *t = of(thread);
	if (t != NULL)
		return t;
	t = new (std::nothrow) IncStackThread(thread);
	if (t == NULL || !t->open()) {
		delete t;
		return NULL;
	}
	StackWatermarkSet::add_watermark(thread, t);
	return t;
}

IncStackThread::~IncStackThread()
{
	if (_full != NULL)
		IncStackRequests::thread_ends(this);
	if (_stack != NULL)
		incstack_stack_abandon(_stack);
	if (_full != NULL)
		incstack_stack_abandon(_full);
	incstack__armed_free(&_armed);
	incstack__seen_drop(&_seen);
}

/* ---- returns ------------------------------------------------------------------------------ */

void IncStackThread::set_watermark()
{
	uintptr_t youngest = incstack__armed_youngest(&_armed);
	Atomic::release_store(&_watermark, youngest == 0 ? 0 : youngest - Below);
}

/* Called when f is, or is about to be, the youngest frame: control has returned to all armed frames
 * up to it. */
void IncStackThread::expose(const frame &f)
{
	uintptr_t oldest = 0;
	uint32_t n = incstack__armed_take(&_armed, (uintptr_t)f.real_fp(), &oldest);
	if (n == 0)
		return;
	_skipped += n - 1;
	IncStackFrames::begin(_stack);
	incstack_stack_returned(_stack, oldest);
	set_watermark();
}

void IncStackThread::before_unwind()
{
	if (_armed.count == 0)
		return;
	RegisterMap map(_thread, false, false);
	frame f = IncStackFrames::first_java_frame(_thread, _thread->last_frame());
	if (!f.is_first_frame())
		expose(f.sender(&map));
}

void IncStackThread::after_unwind()
{
	if (_armed.count == 0)
		return;
	RegisterMap map(_thread, false, false);
	frame f = _thread->last_frame();
	while (!IncStackFrames::is_java(f) && !f.is_entry_frame() && !f.is_first_frame())
		f = f.sender(&map);
	expose(f);
}

int IncStackThread::caller(void *, void *identity, struct incstack_frame *at)
{
	const Identity *i = (const Identity *)identity;
	RegisterMap map(i->thread->_thread, false, false);
	frame f = IncStackFrames::rebuild(*at).sender(&map);
	uintptr_t name = (uintptr_t)f.sp();
	f = IncStackFrames::first_java_frame(i->thread->_thread, f);
	if (!IncStackFrames::is_java(f))
		return 0;
	IncStackFrames::describe(f, name, at);
	if (i->has_barriers && incstack__armed_has(&i->thread->_armed, name))
		at->flags |= INCSTACK_FRAME_ARMED;
	return 1;
}

int IncStackThread::arm(void *, void *identity, uintptr_t name)
{
	IncStackThread *t = ((Identity *)identity)->thread;
	if (incstack__armed_add(&t->_armed, name) != 0)
		return INCSTACK_ENOMEM;
	t->set_watermark();
	return 0;
}

void IncStackThread::disarm(void *, void *identity, uintptr_t name)
{
	IncStackThread *t = ((Identity *)identity)->thread;
	if (incstack__armed_remove(&t->_armed, name))
		t->set_watermark();
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Records what HotSpot's own walk sees. */
void IncStackThread::record(uint64_t sample)
{
	uint32_t count = 0;
	for (vframeStream s(_thread, false, false); !s.at_end(); s.next())
		count++;
	struct incstack__seen_frame *seen = incstack__seen_begin(&_seen, sample, count);
	if (seen == NULL)
		return;
	intptr_t *last = NULL;
	for (vframeStream s(_thread, false, false); !s.at_end(); s.next(), seen++) {
		int bci = s.method()->is_native() ? -1 : s.bci();
		seen->method = incstack__method_key(IncStackFrames::methods, (uintptr_t)s.method());
		seen->bci = bci < 0 ? -1 : bci;
		seen->is_virtual = !s.is_interpreted_frame() && last == s.frame_id();
		last = s.frame_id();
	}
}

/* Returns the stack. The current thread owns it, and it has room for a walk over all frames above
 * sp. */
struct incstack_stack *IncStackThread::ready(bool is_full, uintptr_t sp)
{
	struct incstack_stack *stack = is_full ? _full : _stack;
	size_t wanted = Room + 2 * ((uintptr_t)_thread->stack_base() - sp);
	IncStackFrames::begin(stack);
	incstack__armed_reserve(&_armed, ArmedSpare);
	if (incstack_stack_room(stack) < wanted)
		incstack_stack_reserve(stack, 2 * wanted);
	return stack;
}

int IncStackThread::sample(uint64_t id, uint64_t weight, bool is_full, bool is_checked)
{
	frame f = IncStackFrames::first_java_frame(_thread, _thread->last_frame());
	if (!IncStackFrames::is_java(f))
		return NoFrame;
	struct incstack_frame at;
	IncStackFrames::describe(f, (uintptr_t)f.sp(), &at);
	expose(f);
	struct incstack_stack *stack = ready(is_full, at.sp);
	if (is_checked && !is_full)
		record(_taken);
	struct incstack_top top = {};
	top.pc = at.pc;
	top.sp = at.sp;
	top.fp = at.fp;
	top.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_DECODE_NOW;
	int error = incstack_stack_sample(stack, id, weight, &top);
	if (error == 0)
		(is_full ? _full_taken : _taken)++;
	return error;
}

int IncStackThread::retrieve(struct incstack_tree **incremental, struct incstack_tree **full,
			     struct incstack__seen_result *checked)
{
	int error = 0;
	*incremental = *full = NULL;
	memset(checked, 0, sizeof(*checked));
	if (_thread->has_last_Java_frame())
		after_unwind();
	if (_taken != _retrieved) {
		IncStackFrames::begin(_stack);
		error = incstack_stack_retrieve(_stack, incremental);
		if (error == 0) {
			incstack__seen_compare(&_seen, *incremental, _retrieved,
					       (UINT64_C(1) << 56) - 1, checked);
			_retrieved = _taken;
		}
		set_watermark();
	}
	if (error == 0 && _full_taken != _full_retrieved) {
		IncStackFrames::begin(_full);
		error = incstack_stack_retrieve(_full, full);
		if (error == 0)
			_full_retrieved = _full_taken;
	}
	return error;
}

uint64_t IncStackThread::not_retrieved() const
{
	return _taken - _retrieved + _full_taken - _full_retrieved;
}

static void add(struct incstack_stats *sum, const struct incstack_stack *stack)
{
	struct incstack_stats s;
	s.size = sizeof(s);
	if (incstack_stack_stats(stack, &s) != 0)
		return;
	sum->samples += s.samples;
	sum->walked += s.walked;
	sum->returns += s.returns;
	sum->lost_limit += s.lost_limit;
	sum->lost_busy += s.lost_busy;
	sum->lost_unwind += s.lost_unwind;
	sum->truncated += s.truncated;
	sum->stale += s.stale;
	sum->no_thunk += s.no_thunk;
}

void IncStackThread::count(struct incstack_stats *sum) const
{
	add(sum, _stack);
	add(sum, _full);
}
