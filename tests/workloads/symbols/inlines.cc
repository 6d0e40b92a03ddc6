/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inlines MS [UNLINK…] - burns CPU for MS milliseconds in functions that are inlined into each
 * other several levels deep, out of namespaces, templates, lambdas and methods. Compiled by the
 * tests, with different options. First it deletes the files UNLINK.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace
{

uint64_t now_ms()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

template <typename T> inline __attribute__((always_inline)) T mix(T value)
{
	value ^= value >> 13;
	value *= 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 31;
}

} // namespace

namespace hashing
{

class Digest
{
      public:
	inline __attribute__((always_inline)) void add(uint64_t value)
	{
		state_ = mix(state_ + value);
	}
	uint64_t state() const
	{
		return state_;
	}

      private:
	uint64_t state_ = 1;
};

static inline __attribute__((always_inline)) void add_all(Digest &digest,
							  const std::vector<uint64_t> &values)
{
	for (uint64_t value : values)
		digest.add(value);
}

} // namespace hashing

__attribute__((noinline)) uint64_t burn_inlined(const std::vector<uint64_t> &values)
{
	hashing::Digest digest;
	auto twice = [&] {
		hashing::add_all(digest, values);
		hashing::add_all(digest, values);
	};

	twice();
	return digest.state();
}

/* Not named by any dynamic symbol. */
static __attribute__((noinline)) uint64_t burn_static(uint64_t rounds)
{
	uint64_t value = rounds;

	while (rounds--)
		value = mix(value);
	return value;
}

int main(int argc, char **argv)
{
	std::vector<uint64_t> values(4000, 3);
	uint64_t end = now_ms() + (argc > 1 ? atoi(argv[1]) : 100), sum = 0;

	for (int i = 2; i < argc; i++)
		if (unlink(argv[i]))
			perror(argv[i]);
	while (now_ms() < end)
		sum += burn_inlined(values) + burn_static(4000);
	return sum == 1;
}
