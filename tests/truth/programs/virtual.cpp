/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * leak 100 circle<draw<top
 * leak 300 square<draw<top
 */
struct Shape {
	virtual ~Shape() = default;
	virtual int draw() = 0;
};

char *volatile kept;

struct Circle : Shape {
	int draw() override
	{
		kept = new char[100]; // <circle draw>
		return 1;
	}
};

struct Square : Shape {
	int draw() override
	{
		kept = new char[300]; // <square draw>
		return 1;
	}
};

__attribute__((noinline)) static int draw_all(Shape *const *shapes)
{
	int sum = 0;

	for (int i = 0; i < 2; i++)
		sum += shapes[i]->draw(); // <draw draw_all>
	return sum;
}

int main()
{
	Circle circle;
	Square square;
	Shape *shapes[] = {&circle, &square};

	return draw_all(shapes) != 2; // <top main>
}
