/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 40 make<top
 * leak 400 inside<make<top
 */
struct Buffer {
	Buffer() : bytes(new char[400]) // <inside Buffer>
	{
	}
	char *bytes;
	long more[4];
};

Buffer *volatile kept;

__attribute__((noinline)) static int make()
{
	kept = new Buffer; // <make make>
	return 1;
}

int main()
{
	return make() != 1; // <top main>
}
