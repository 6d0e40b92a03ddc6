// SPDX-License-Identifier: GPL-2.0-or-later
// Inlined calls several levels deep, lambdas, templates, classes inside of functions.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int plain_entry(int);
extern "C" int without_debug_info(int);

namespace outer
{
namespace inner
{
template <typename T> static inline T twice(T x)
{
	return x + x;
}

static inline int level4(int x)
{
	if (x % 7 == 3)
		std::puts("seven");
	return twice(x) ^ 0x55;
}

static inline int level3(int x)
{
	int sum = 0;
	for (int i = 0; i < x; i++) {
		sum += level4(i);
		if (sum > 1000)
			sum -= level4(sum);
	}
	return sum;
}

struct Level2 {
	int base;
	int operator()(int x) const
	{
		return level3(x) + base;
	}
	virtual ~Level2() = default;
	virtual int name(const std::string &s) const
	{
		return static_cast<int>(s.size()) + level3(base);
	}
};
} // namespace inner

namespace
{
__attribute__((noinline)) int hidden(int x)
{
	inner::Level2 two{};
	two.base = x;
	return two(x) + two.name(std::string(x, 'x'));
}
} // namespace

__attribute__((noinline)) static int sorted(std::vector<int> &v)
{
	int calls = 0;
	auto compare = [&calls](int a, int b) {
		calls++;
		return inner::level4(a) < inner::level4(b);
	};
	std::sort(v.begin(), v.end(), compare);
	struct Local {
		__attribute__((noinline)) int method(int x)
		{
			return x > 3 ? inner::level3(x) : 0;
		}
	} local;
	return calls + local.method(calls);
}

/* Part of it is cold. */
__attribute__((noinline)) int throws(int x)
{
	try {
		if (__builtin_expect(x > 100, 0))
			throw std::runtime_error(std::to_string(inner::level3(x)));
		return inner::level4(x);
	} catch (const std::exception &e) {
		return static_cast<int>(std::string(e.what()).size());
	}
}
} // namespace outer

int main(int argc, char **)
{
	std::vector<int> v;
	std::map<std::string, int> names;
	for (int i = 0; i < 100; i++)
		v.push_back(i * argc % 37);
	names["a"] = outer::hidden(argc);
	names["b"] = outer::sorted(v) + outer::throws(argc);
	for (const auto &name : names)
		std::printf("%s %d\n", name.first.c_str(), name.second);
	return plain_entry(argc) + without_debug_info(argc);
}
