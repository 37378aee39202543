/* SPDX-License-Identifier: MIT
 *
 * Exceptions through patched frames. The unwinder that the program binds must be
 * libgcc's (libunwind in the global scope would break every throw silently), and
 * what is thrown must be caught.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

static int deep(int level);
static int (*volatile again)(int) = deep; /* unknown to the compiler: no loop */

static int deep(int level)
{
	void *volatile block = std::malloc(16);
	std::free(block);
	if (level == 0)
		throw std::runtime_error("thrown");
	return again(level - 1) + 1;
}

int main()
{
	Dl_info info;
	void *raise = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
	int caught = 0;

	if (raise == nullptr || dladdr(raise, &info) == 0 ||
	    std::strstr(info.dli_fname, "libgcc_s") == nullptr)
		return 1;
	for (int i = 0; i < 1000; i++) {
		try {
			deep(i % 50);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	return caught == 1000 ? 0 : 2;
}
