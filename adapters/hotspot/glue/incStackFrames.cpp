/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Frames of HotSpot for the library. A frame at a call is described by its pc, by the stack
 * pointer that its callee returns with (its name), and by one more word: the frame pointer of an
 * interpreted frame, the unextended stack pointer of a compiled one.
 */
#include "precompiled.hpp"
#include "code/codeCache.hpp"
#include "code/debugInfo.hpp"
#include "code/debugInfoRec.hpp"
#include "code/nmethod.hpp"
#include "code/pcDesc.hpp"
#include "incstack/incStackThread.hpp"
#include "interpreter/interpreter.hpp"
#include "oops/method.inline.hpp"
#include "runtime/frame.inline.hpp"
#include "runtime/registerMap.hpp"
#include "runtime/thread.inline.hpp"

#include <incstack/incstack_jvmti.h>
#include <incstack/positions.h>

struct incstack_runtime *IncStackFrames::incremental;
struct incstack_runtime *IncStackFrames::intercepting;
struct incstack_runtime *IncStackFrames::full;
struct incstack__methods *IncStackFrames::methods;

static const uint32_t MethodsMost = 1u << 22;

/* The barrier distances: which caller gets a barrier. An intercepted return saves the registers, finds
 * its frame and enters the library. That takes as long as walking over some ten frames, which would mostly be
 * returned to soon. The least is 2, because a thread may be sampled after its youngest frame has
 * compared the stack pointer and before it has returned. */
static const uint32_t Distance = 16;
static const uint32_t LeastDistance = 2;

static bool create(uint32_t mode, uint32_t distance, struct incstack_runtime **runtime)
{
	static struct incstack_embedder embedder;
	embedder.size = sizeof(embedder);
	embedder.code.decode = IncStackFrames::decode;
	struct incstack_options options = {};
	options.size = sizeof(options);
	options.embedder = &embedder;
	options.mode = mode;
	options.distance = distance;
	return incstack_runtime_create(&options, runtime) == 0;
}

bool IncStackFrames::open()
{
	if (methods == NULL)
		methods = incstack__methods_create(MethodsMost);
	return methods != NULL &&
	       (incremental != NULL || create(INCSTACK_MODE_PATCH, Distance, &incremental)) &&
	       (intercepting != NULL ||
		create(INCSTACK_MODE_PATCH, LeastDistance, &intercepting)) &&
	       (full != NULL || create(INCSTACK_MODE_FULL, Distance, &full));
}

bool IncStackFrames::is_java(const frame &f)
{
	return f.is_interpreted_frame() || (f.cb() != NULL && f.cb()->is_compiled());
}

frame IncStackFrames::first_java_frame(JavaThread *thread, frame f)
{
	RegisterMap map(thread, false /* update_map */, false /* process_frames */);
	while (!is_java(f) && !f.is_first_frame())
		f = f.sender(&map);
	return f;
}

/* The frame that was described last. The library asks next what is inlined at it, and who called it. To
 * build it again each time would look up its code twice more. A frame has a constructor, which a
 * variable of a thread cannot call, so its bytes are kept. */
struct LastFrame {
	uintptr_t pc, fp;
	char bytes[sizeof(frame)];
};

static __thread LastFrame last;

void IncStackFrames::begin(struct incstack_stack *stack)
{
	last.pc = 0;
	incstack_stack_set_owner(stack);
}

frame IncStackFrames::rebuild(const struct incstack_frame &at)
{
	if (at.pc == last.pc && at.fp == last.fp)
		return *(const frame *)last.bytes;
	address pc = (address)at.pc;
	intptr_t *fp = (intptr_t *)at.fp;
	if (Interpreter::contains(pc))
		return frame((intptr_t *)at.sp, (intptr_t *)at.sp, fp, pc);
	return frame(fp, fp, NULL, pc);
}

void IncStackFrames::describe(const frame &f, uintptr_t name, struct incstack_frame *at)
{
	at->pc = (uintptr_t)f.pc();
	at->sp = name;
	at->fp = (uintptr_t)(f.is_interpreted_frame() ? f.fp() : f.unextended_sp());
	at->flags = INCSTACK_FRAME_DECODE_NOW;
	last.pc = at->pc;
	last.fp = at->fp;
	memcpy(last.bytes, &f, sizeof(f));
}

static struct incstack_virtual_frame virtual_frame(const Method *method, int bci, uint64_t kind)
{
	struct incstack_virtual_frame v = {};
	v.function = incstack__method_key(IncStackFrames::methods, (uintptr_t)method) | kind << 56;
	v.position = bci < 0 ? -1 : bci;
	return v;
}

static struct incstack_virtual_frame native_frame(const Method *method)
{
	return virtual_frame(method, -1, INCSTACK_JVMTI_KIND_NATIVE);
}

static struct incstack_virtual_frame interpreted_frame(const frame &f)
{
	Method *method = f.interpreter_frame_method();
	if (method->is_native())
		return native_frame(method);
	int bci = method->validate_bci_from_bcp(f.interpreter_frame_bcp());
	return virtual_frame(method, bci, INCSTACK_JVMTI_KIND_INTERPRETED);
}

/* The methods at a pc of compiled code, innermost first. */
static int compiled_frames(CompiledMethod *nm, address pc, struct incstack_virtual_frame *out,
			   int max)
{
	uint64_t kind = nm->is_compiled_by_c1() ? INCSTACK_JVMTI_KIND_C1 : INCSTACK_JVMTI_KIND_C2;
	const PcDesc *desc = nm->pc_desc_at(pc);
	int offset = desc == NULL ? DebugInformationRecorder::serialized_null
				  : desc->scope_decode_offset();
	int n = 0;
	while (offset != DebugInformationRecorder::serialized_null && n < max) {
		DebugInfoReadStream stream(nm, offset);
		offset = stream.read_int();
		Method *method = stream.read_method();
		out[n++] = virtual_frame(method, stream.read_bci(), kind);
	}
	if (n == 0)
		out[n++] = virtual_frame(nm->method(), -1, kind);
	return n;
}

/* Likewise, from the table of positions if it has the pc. OSR compilations may have numbers of their own. */
static int known_frames(CompiledMethod *nm, address pc, struct incstack_virtual_frame *out, int max)
{
	static struct incstack__positions positions;
	uint64_t code = (uint64_t)(uint32_t)nm->compile_id() << 1 | (nm->is_osr_method() ? 1 : 0);
	int n = incstack__positions_find(&positions, (uintptr_t)pc, code, out);
	if (n != 0)
		return n;
	n = compiled_frames(nm, pc, out, max);
	incstack__positions_keep(&positions, (uintptr_t)pc, code, out, n);
	return n;
}

int IncStackFrames::decode(void *, const struct incstack_frame *at,
			   struct incstack_virtual_frame *out, int max)
{
	frame f = rebuild(*at);
	if (f.is_interpreted_frame()) {
		out[0] = interpreted_frame(f);
		return 1;
	}
	CompiledMethod *nm = f.cb()->as_compiled_method();
	if (!nm->is_native_method())
		return known_frames(nm, f.pc(), out, max);
	out[0] = native_frame(nm->method());
	return 1;
}
