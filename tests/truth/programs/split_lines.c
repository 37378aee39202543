/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 30 first<top
 * leak 40 second<top
 */
#include <stdlib.h>

struct pair {
	char *left, *right;
};

struct pair pair;

__attribute__((noipa)) static int fill(struct pair *out)
{
	*out = (struct pair){
		.left = malloc(30),  /* <first fill> */
		.right = malloc(40), /* <second fill> */
	};
	return out->left == NULL;
}

int main(void)
{
	const int failed = fill(&pair); /* <top main> */

	return failed + (pair.right == NULL);
}
