/* SPDX-License-Identifier: MIT
 *
 * What native/ and the recorder use of the core besides its public interface. A shared
 * libincstack exports what native/ uses (cmake/incstack.map.in).
 */
#ifndef INCSTACK__SHARED_H
#define INCSTACK__SHARED_H

#include <stdbool.h>

#include <incstack/incstack.h>

/* Whether the word at the address can be read. Then the whole page can be read (arch.c). */
INCSTACK_API bool incstack__page_readable(uintptr_t address);

/* Calls the kernel with up to six arguments. Returns what the kernel returns: a negated error if
 * the call failed. Unlike libc's syscall, no library can replace it, and errno stays as it is
 * (system_call.S). */
INCSTACK_API long incstack__system_call(long number, ...);

/* Whether the pc is in a thunk or in the trampoline (arch.c). */
int incstack__thunk_contains(uintptr_t pc);

/* If the frame is in a thunk, or was interrupted in the trampoline, replaces it by the frame that
 * runs next. The pc is 0 then if that frame is unknown (unwind.c). For walkers that omit the frames
 * of thunks. */
INCSTACK_API bool incstack__frame_pass_trampoline(struct incstack_frame *frame);

/* Whether the pc is in a thunk, in the trampoline or on a landing pad (arch.c). A sample there
 * belongs to the frame that runs next. */
INCSTACK_API int incstack__trampoline_contains(uintptr_t pc);

/* Whether the hardware keeps a shadow stack, so that nothing may be patched (arch.c). */
bool incstack__shadow_stack_on(void);

/* From now on only incstack__pools_add makes pools. A new pool must be registered with
 * libgcc, which might wait for a lock, so the caller chooses the moment (thunks.c). */
void incstack__pools_close(void);
bool incstack__pools_needed(void);
void incstack__pools_add(struct incstack_stack *s);

/* Whether a return into a frame of the stack may still be intercepted (barrier.c). */
bool incstack__stack_is_patched(const struct incstack_stack *s);

/* Restores, in the child of fork, every return slot that still holds one of the library's
 * thunks. The calling thread must be the only one of the child. The state of the stack may
 * have been wiped (MADV_WIPEONFORK) and must not be used afterwards. The memory of its
 * frame objects must still exist. Null is allowed and does nothing (barrier.c). */
void incstack__stack_forked(struct incstack_stack *s);

/* The calling thread began on this stack. So if it runs on another stack, it has switched stacks,
 * and the library was not told where on this stack. An operation of that thread then neither
 * confirms nor walks the callers that are still open; a retrieve truncates them (life_cycle.c). */
INCSTACK_API void incstack__stack_is_of_thread(struct incstack_stack *s);

/* Whether an operation on the stack, or a return through one of its thunks, is in progress. Its
 * owner may also ask in a signal handler, to learn what the handler has interrupted. False for null
 * (reset.c). */
bool incstack__stack_is_busy(const struct incstack_stack *s);

/* Whether some callers of sampled frames are still to be walked. Only its owner may ask. False for
 * null (retrieve.c). */
bool incstack__stack_has_gaps(const struct incstack_stack *s);

/* The owner of the stack was interrupted at `top` and holds still, and the caller has taken the
 * stack over. Removes the frames that are gone from what is known, because operations on another
 * stack cannot see that they are. Without `top`, or if the rules do not lead from it to the stack,
 * nothing stays known, and the callers that were not captured are truncated (mode.c). */
int incstack__stack_interrupted_at(struct incstack_stack *s, const struct incstack_top *top);

/* Completes the open traces as incstack_stack_retrieve does, but hands nothing over. Until the next
 * sample all callers of the sampled frames are known. ENOMEM: some traces are still open
 * (retrieve.c). */
int incstack__stack_complete(struct incstack_stack *s);

/* As incstack__stack_complete, for a thread that was interrupted at `top`, if the rules lead from
 * it to the stack. The caller may run on another stack (retrieve.c). */
int incstack__stack_complete_at(struct incstack_stack *s, const struct incstack_top *top);

/* As incstack_stack_room, but without the bytes that the completion of open traces may need. So it
 * is the room for samples alone (life_cycle.c). */
size_t incstack__stack_sample_room(const struct incstack_stack *s);

/* From now on incstack__sample_caller remembers walks, and shares the objects of a walk that it finds
 * again. Returns 0 or INCSTACK_ENOMEM (remembered.c). */
int incstack__stack_remember(struct incstack_stack *s);

/* As incstack_stack_sample with weight 0 and the top {pc, sp, fp}, which is on the stack. Also
 * returns INCSTACK_EROOM if there is less room than `least` bytes besides what the objects of all
 * callers may need (sample.c). */
int incstack__sample_caller(struct incstack_stack *s, uint64_t id, uintptr_t pc, uintptr_t sp,
			    uintptr_t fp, size_t least);

/* Walks a whole machine stack and uses nothing from earlier samples (full_walk.c). Writes the
 * frames, top first. Returns how many there are, or a negative INCSTACK_E* code if the stack is
 * busy. */
int incstack__full_walk(struct incstack_stack *s, const struct incstack_top *top,
			struct incstack_frame *frames, int max);

#endif
