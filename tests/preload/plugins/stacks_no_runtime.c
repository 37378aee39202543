/* SPDX-License-Identifier: MIT
 *
 * Calls the operators of C++ in an object that links no C++ runtime. Only the recorder's stub
 * defines these operators.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *_Znwm(size_t bytes) __attribute__((weak));
void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment) __attribute__((weak));
void *_ZnamRKSt9nothrow_t(size_t bytes, const void *nothrow) __attribute__((weak));
void _ZdlPv(void *block) __attribute__((weak));
void _ZdlPvSt11align_val_t(void *block, size_t alignment) __attribute__((weak));

int allocate_without_runtime(void);

int allocate_without_runtime(void)
{
	void *blocks[3];

	if (_Znwm == NULL)
		return 0;
	blocks[0] = _Znwm(0);
	blocks[1] = _ZnwmSt11align_val_t(100, 256);
	blocks[2] = _ZnamRKSt9nothrow_t(100, blocks);
	for (int i = 0; i < 3; i++)
		if (blocks[i] == NULL)
			return 1;
	if ((size_t)blocks[1] % 256 != 0)
		return 2;
	memset(blocks[1], 1, 100);
	memset(blocks[2], 1, 100);
	_ZdlPv(blocks[0]);
	_ZdlPvSt11align_val_t(blocks[1], 256);
	_ZdlPv(blocks[2]);
	return 0;
}
