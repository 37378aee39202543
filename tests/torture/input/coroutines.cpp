// SPDX-License-Identifier: MIT
//
// C++20 coroutines: generators inside generators, resumed on other threads, destroyed early.
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <utility>

struct generator {
	struct promise_type {
		std::string value;
		std::exception_ptr error;

		generator get_return_object()
		{
			return generator(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		std::suspend_always initial_suspend()
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(std::string text)
		{
			value = std::move(text);
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			error = std::current_exception();
		}
	};
	std::coroutine_handle<promise_type> handle;

	explicit generator(std::coroutine_handle<promise_type> h) : handle(h)
	{
	}
	generator(const generator &) = delete;
	~generator()
	{
		handle.destroy();
	}
	bool next()
	{
		handle.resume();
		if (handle.promise().error)
			std::rethrow_exception(handle.promise().error);
		return !handle.done();
	}
};

static generator steps(unsigned depth)
{
	co_yield std::string(depth + 20, 'x');
	if (depth > 0) {
		generator inner = steps(depth - 1);

		while (inner.next())
			co_yield inner.handle.promise().value + "y";
	} else {
		throw 7;
	}
}

static unsigned work(unsigned rounds)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < rounds; i++) {
		generator all = steps(i % 15);

		try {
			for (unsigned taken = 0; taken < 10 && all.next(); taken++)
				sum += unsigned(all.handle.promise().value.size());
		} catch (int number) {
			sum += unsigned(number);
		}
	}
	return sum;
}

int main(int, char **argv)
{
	const unsigned rounds = unsigned(atoi(argv[1])) * 40;
	unsigned other = 0;
	std::thread thread([&] { other = work(rounds); });
	const unsigned sum = work(rounds);

	thread.join();
	printf("%u %u\n", sum, other);
}
