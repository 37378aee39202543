/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 1200 cells<table<
 */
struct Table {
	explicit Table(unsigned count) : cells(new int[count]) // <cells Table>
	{
	}
	int *cells;
};

Table table(300); // <table >

int main()
{
	return table.cells == nullptr;
}
