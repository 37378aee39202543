/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 90 load<fetch<top
 */
namespace store::disk
{
char *volatile kept;

inline void load(unsigned size)
{
	kept = new char[size]; // <load load>
}
} // namespace store::disk

namespace app
{
namespace
{
__attribute__((noinline)) int fetch(int rounds)
{
	for (int i = 0; i < rounds; i++)
		store::disk::load(30); // <fetch fetch>
	return rounds;
}
} // namespace
} // namespace app

int main()
{
	return app::fetch(3) != 3; // <top main>
}
