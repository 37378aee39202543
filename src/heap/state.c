/* SPDX-License-Identifier: MIT
 *
 * Who may call, and whether a call is in progress.
 */
#include "state.h"

/* A number that no other thread has at the same time. The attribute saves a call. */
uintptr_t incstack__heap_thread_self(void)
{
#if defined(__GNUC__)
	static __attribute__((tls_model("initial-exec"))) _Thread_local char here;
#else
	static _Thread_local char here;
#endif
	return (uintptr_t)&here;
}

static bool is_foreign(stack *s)
{
	return s->checks && atomic_load_explicit(&s->owner, memory_order_relaxed) !=
				    incstack__heap_thread_self();
}

int incstack__heap_take_busy(stack *s)
{
	/* acquire: pairs with the release in leave(). */
	if (!atomic_exchange_explicit(&s->busy, 1, memory_order_acquire))
		return 0;
	atomic_fetch_add_explicit(&s->busy_count, 1, memory_order_relaxed);
	return INCSTACK_EBUSY;
}

/* The checks of a call that are not needed usually, and its errors. */
NOINLINE int incstack__heap_enter_slowly(stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (is_foreign(s))
		return INCSTACK_ETHREAD;
	int error = incstack__heap_take_busy(s);
	if (!error && is_foreign(s)) { /* adopted in between */
		leave(s);
		error = INCSTACK_ETHREAD;
	}
	return error;
}
