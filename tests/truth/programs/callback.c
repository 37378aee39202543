/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 72 alloc<sort<top
 */
#include <stdlib.h>

void *kept[3];
int count;

static int order(const void *a, const void *b)
{
	if (count < 3)
		kept[count++] = malloc(24); /* <alloc order> */
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int sorted(int *numbers)
{
	qsort(numbers, 8, sizeof(*numbers), order); /* <sort sorted> */
	return numbers[0];
}

int main(void)
{
	int numbers[] = {5, 4, 8, 1, 2, 9, 7, 3};

	return sorted(numbers) != 1; /* <top main> */
}
