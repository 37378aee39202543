/* SPDX-License-Identifier: MIT
 *
 * A library that allocates while it is loaded and unloaded, and throws when it is called. It is built twice, with
 * frames of different sizes: one library after the other lies at the same place, and the rules differ.
 */
#include <stdexcept>
#include <string>
#include <vector>

static std::vector<std::string> names(100, std::string(1000, 'n'));

struct at_end {
	~at_end()
	{
		names.assign(50, std::string(2000, 'e'));
	}
};
static at_end end;

extern "C" int plugin_throw(int depth);

extern "C" int plugin_throw(int depth)
{
	volatile char filler[PLUGIN_FRAME];
	filler[0] = 0;
	std::string text(static_cast<size_t>(depth) * 100 + 1000, 't');
	if (depth == 0)
		throw std::runtime_error(text);
	return plugin_throw(depth - 1) + static_cast<int>(text.size()) + filler[0];
}
