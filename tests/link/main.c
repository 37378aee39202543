/* SPDX-License-Identifier: MIT
 *
 * A program in C that knows nothing of exceptions and loads the traced C++ code,
 * by its dependencies or, with LOADED, at run time and out of the global scope.
 */
#ifdef LOADED
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	void *library = dlopen(LOADED, RTLD_NOW | RTLD_LOCAL);
	int (*program)(void) = library ? (int (*)(void))dlsym(library, "program") : NULL;
	if (!program) {
		puts(dlerror());
		return 3;
	}
	return program();
}
#else
extern int program(void);

int main(void)
{
	return program();
}
#endif
