/* SPDX-License-Identifier: MIT
 *
 * The smallest program that links incstack::native; link_order.py reads its
 * library list.
 */
int main(void)
{
	return 0;
}
