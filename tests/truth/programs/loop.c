/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * cpu 60 spin<hot<top
 */
#include <stdint.h>

static inline uint64_t spin(uint64_t value)
{
	return value * 6364136223846793005u + 1442695040888963407u; /* <spin spin> */
}

__attribute__((noinline)) static uint64_t hot(uint64_t rounds)
{
	uint64_t value = rounds;

	for (uint64_t i = 0; i < rounds; i++)
		value = spin(spin(spin(spin(value)))); /* <hot hot> */
	return value;
}

int main(void)
{
	return hot(150000000) == 3; /* <top main> */
}
