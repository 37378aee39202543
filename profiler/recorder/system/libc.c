/* SPDX-License-Identifier: MIT
 *
 * Finds libc's own functions, by asking libc and not the global scope.
 */
#include "libc.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <string.h>

struct incstack__libc incstack__libc = {
	.setcancelstate = pthread_setcancelstate,
	.setcanceltype = pthread_setcanceltype,
	.setspecific = pthread_setspecific,
};

/* `function` points to a pointer to a function, which is replaced. */
static void find(void *libc, const char *name, void *function)
{
	void *const found = dlsym(libc, name);

	if (found)
		memcpy(function, &found, sizeof(found));
}

void incstack__libc_find(void)
{
	void *libc = dlopen(LIBC_SO, RTLD_NOW | RTLD_NOLOAD);

	if (!libc)
		return;
	find(libc, "pthread_setcancelstate", &incstack__libc.setcancelstate);
	find(libc, "pthread_setcanceltype", &incstack__libc.setcanceltype);
	find(libc, "pthread_setspecific", &incstack__libc.setspecific);
}
