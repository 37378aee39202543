/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * leak 12 copy
 * leak 6 part
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

const char *volatile text = "hello world";
char *volatile kept;

int main(void)
{
	kept = strdup(text);     /* <copy main> */
	kept = strndup(text, 5); /* <part main> */
	return kept == NULL;
}
