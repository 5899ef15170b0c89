// C++ throw and catch, cleanups, rethrow: what unwinds under the stepper of tests/unit/walk_stepping.c.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sum;

struct guard {
	long n;
	explicit guard(long v) : n(v)
	{
	}
	NOINLINE ~guard()
	{
		sum = sum + n;
	}
};

struct base {
	virtual ~base() = default;
	virtual long call(long n) = 0;
};

struct thrower : base {
	NOINLINE long call(long n) override
	{
		guard g(n);
		if (n == 0)
			throw std::runtime_error("deep");
		if (n == 100)
			throw 5;
		return call(n - 1) + 1;
	}
};

NOINLINE static long rethrows(base &b, long n)
{
	try {
		guard g(1);
		return b.call(n);
	} catch (const std::exception &e) {
		sum = sum + e.what()[0];
		throw;
	}
}

NOINLINE static long catches(base &b, long n)
{
	alignas(64) volatile long aligned[8] = {n};
	try {
		return rethrows(b, n) + aligned[0];
	} catch (const std::runtime_error &e) {
		return (long)std::string(e.what()).size() + aligned[0];
	} catch (int i) {
		return i;
	}
}

int main()
{
	thrower t;
	std::vector<std::string> words;
	long r = catches(t, 3) + catches(t, 100);
	for (int i = 0; i < 4; i++)
		words.push_back(std::to_string(r + i));
	std::string all;
	for (const auto &w : words)
		all += w;
	std::printf("%d\n", (int)(all.size() != 0));
	return 0;
}
