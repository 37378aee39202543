/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 70 before<top
 * calls 1 before<top
 */
#include <stdexcept>

char *volatile kept;

__attribute__((noinline)) static int fail(int code)
{
	kept = new char[70]; // <before fail>
	if (code > 0)
		throw std::runtime_error("failed");
	return 1;
}

int main()
{
	try {
		return fail(1); // <top main>
	} catch (const std::exception &error) {
		return error.what()[0] != 'f';
	}
}
