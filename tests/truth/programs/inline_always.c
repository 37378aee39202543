/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * leak 800 deep<middle<call<top
 */
#include <stdlib.h>

#define INLINE static inline __attribute__((always_inline))

void *volatile kept;

INLINE void deep(int i)
{
	kept = malloc(8u * (unsigned)i); /* <deep deep> */
}

INLINE void middle(int i)
{
	if (i % 2)
		deep(i); /* <middle middle> */
}

__attribute__((noinline)) static int call(int most)
{
	for (int i = 0; i < most; i++)
		middle(i); /* <call call> */
	return most + 1;
}

int main(void)
{
	return call(20) != 21; /* <top main> */
}
