/* SPDX-License-Identifier: MIT
 *
 * A C program without exceptions that loads the traced C++ code: as a dependency, or with LOADED at
 * run time and outside of the global scope.
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
