/* SPDX-License-Identifier: MIT
 *
 * Looks like a library built by GraalVM native-image: it exports the function that makes an
 * isolate, and its collector looks up the return addresses that lead into it.
 */
#include <stdint.h>

int graal_create_isolate(void);
int collect(void (*callee)(void));

int graal_create_isolate(void)
{
	return 0;
}

__attribute__((noinline)) static int call_and_look(void (*callee)(void))
{
	const volatile uintptr_t *frame = __builtin_frame_address(0);
	const uintptr_t caller = frame[1];

	callee();
	return frame[1] == caller;
}

__attribute__((noinline)) int collect(void (*callee)(void))
{
	const int same = call_and_look(callee);

	return call_and_look(callee) && same;
}
