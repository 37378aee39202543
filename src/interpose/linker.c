/* SPDX-License-Identifier: MIT
 *
 * Copies the dynamic linker's data before the recorder is loaded. The recorder finds the linker's
 * counters by the words that have changed after that (recorder/linker.c).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "stub.h"

static struct incstack__linker_view view;

/* Copies the data while the linker's lock is held, so that nothing changes in the meantime. */
static int copy(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	view.adds = info->dlpi_adds;
	view.subs = info->dlpi_subs;
	memcpy(view.copy, view.data, view.words * sizeof(view.copy[0]));
	return 1;
}

/* _rtld_global is a private object of glibc. The size of its symbol says how long it is. */
const struct incstack__linker_view *incstack__stub_view_linker(void)
{
	const void *data = incstack__stub_dlsym(RTLD_DEFAULT, "_rtld_global");
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (data == NULL || dladdr1(data, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
	    symbol == NULL || info.dli_saddr != data || symbol->st_size > sizeof(view.copy))
		return &view;
	view.data = data;
	view.words = symbol->st_size / sizeof(view.copy[0]);
	dl_iterate_phdr(copy, NULL);
	return &view;
}
