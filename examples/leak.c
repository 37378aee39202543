/* SPDX-License-Identifier: MIT
 *
 * A program with a leak, for README.md: a cache of answers that forgets to free what it replaces.
 * If it was built with -g, the report names the line:
 *     incstack heap -o leak.heap -- ./leak
 *
 * Build: cc -g leak.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answer {
	char *question;
	char text[200];
};

static struct answer *cache[64];

static unsigned place_of(const char *question)
{
	unsigned sum = 0;

	while (*question)
		sum = 31 * sum + (unsigned char)*question++;
	return sum % 64;
}

static void remember(const char *question, const char *text)
{
	struct answer *answer = malloc(sizeof(*answer));

	if (!answer)
		return;
	answer->question = strdup(question);
	snprintf(answer->text, sizeof(answer->text), "%s", text);
	cache[place_of(question)] = answer; /* whatever was there is lost */
}

static void answer_one(int number)
{
	char *question = malloc(40);

	if (!question)
		return;
	snprintf(question, 40, "What is %d times 7?", number);
	remember(question, "Multiply, and look at the last digit first.");
	free(question);
}

int main(void)
{
	for (int i = 0; i < 5000; i++)
		answer_one(i);
	puts("5000 questions answered");
	return 0;
}
