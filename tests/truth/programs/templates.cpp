/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 80 build<doubles<top
 * leak 40 build<ints<top2
 */
template <typename T> struct Holder {
	static T *volatile kept;
	static void build(unsigned count)
	{
		kept = new T[count]; // <build build>
	}
};

template <typename T> T *volatile Holder<T>::kept;

__attribute__((noinline)) static int doubles()
{
	Holder<double>::build(10); // <doubles doubles>
	return 1;
}

__attribute__((noinline)) static int ints()
{
	Holder<int>::build(10); // <ints ints>
	return 2;
}

int main()
{
	int sum = doubles(); // <top main>

	sum += ints(); // <top2 main>
	return sum != 3;
}
