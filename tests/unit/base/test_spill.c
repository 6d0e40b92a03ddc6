/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "spill.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

#define MIB	   (1u << 20)
#define MEMORY_MAX (32u * MIB)
/* The heap's small arrays, the test itself, and what the allocator keeps. */
#define MEMORY_BESIDE (12u * MIB)

/* AddressSanitizer keeps freed memory, so only without it the process's memory says anything. */
#ifdef __SANITIZE_ADDRESS__
static const bool counts_memory = false;
#else
static const bool counts_memory = true;
#endif

typedef VEC(uint64_t) Numbers;

static int temporary_file(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder ?: "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void begin(void)
{
	assert_int_equal(spill_begin(temporary_file(), "the folder", "", MEMORY_MAX), 0);
}

static size_t anonymous_memory(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	size_t kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %zu kB", &kib) == 1)
			break;
	return kib * 1024;
}

static uint64_t number_at(size_t array, size_t i)
{
	return hash_mix(array, i);
}

static void check_numbers(const Numbers *numbers, size_t array)
{
	for (size_t i = 0; i < numbers->count; i++)
		if (numbers->items[i] != number_at(array, i))
			fail_msg("item %zu of array %zu is wrong", i, array);
}

/* Arrays that are four times as large as the memory for them, that grow side by side. */
static void test_larger_than_memory(void **state)
{
	size_t before = anonymous_memory(), most = 0;
	Numbers numbers[3] = {};

	(void)state;
	begin();
	for (size_t i = 0; i < 4 * MEMORY_MAX / sizeof(uint64_t) / ARRAY_LEN(numbers); i++) {
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			*vec_push(&numbers[k]) = number_at(k, i);
		if (i % (1u << 17) == 0)
			most = MAX(most, anonymous_memory());
	}
	for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
		check_numbers(&numbers[k], k);
	most = MAX(most, anonymous_memory());
	assert_true(most < before + MEMORY_MAX + MEMORY_BESIDE || !counts_memory);
	assert_true(spill_peak() > 2 * MEMORY_MAX);
	for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
		vec_free(&numbers[k]);
	spill_end();
}

/* Arrays that are too small for the file leave less memory for large ones. */
static void test_small_arrays(void **state)
{
	static Numbers small[1000];
	const size_t small_count = 20 * MIB / ARRAY_LEN(small) / sizeof(uint64_t);
	size_t before = anonymous_memory(), most = 0;
	Numbers large = {};

	(void)state;
	begin();
	for (size_t k = 0; k < ARRAY_LEN(small); k++) {
		vec_reserve(&small[k], small_count);
		for (size_t i = 0; i < small_count; i++)
			*vec_push(&small[k]) = number_at(k, i);
	}
	assert_int_equal(spill_peak(), 0);
	for (size_t i = 0; i < 2 * MEMORY_MAX / sizeof(uint64_t); i++) {
		*vec_push(&large) = number_at(0, i);
		if (i % (1u << 15) == 0)
			most = MAX(most, anonymous_memory());
	}
	assert_true(most < before + MEMORY_MAX + MEMORY_BESIDE || !counts_memory);
	check_numbers(&large, 0);
	for (size_t k = 0; k < ARRAY_LEN(small); k++) {
		check_numbers(&small[k], k);
		vec_free(&small[k]);
	}
	vec_free(&large);
	spill_end();
}

static size_t count_mappings(const void *from, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/maps", "re");
	uintptr_t wanted = (uintptr_t)from, first, end;
	char line[4096];
	size_t count = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &first, &end) == 2)
			count += first < wanted + size && end > wanted;
	return count;
}

/* An array in the heap stays one mapping when it grows: the kernel moves no more than one. */
static void test_one_mapping(void **state)
{
	size_t most = 0;

	(void)state;
	assert_int_equal(spill_begin(temporary_file(), "the folder", "", 8 * MEMORY_MAX), 0);
	for (size_t k = 20; k <= 60; k += 20) {
		Numbers numbers = {};

		while (numbers.count < k * MIB / sizeof(uint64_t))
			*vec_push(&numbers) = number_at(k, numbers.count);
		most = MAX(most, count_mappings(numbers.items, numbers.count * sizeof(uint64_t)));
		check_numbers(&numbers, k);
		vec_free(&numbers);
	}
	assert_int_equal(spill_peak(), 0);
	assert_true(most == 1 || !counts_memory);
	spill_end();
}

/* Without the file the same arrays take more memory than the test above allows. */
static void test_without_file(void **state)
{
	size_t before = anonymous_memory();
	Numbers numbers = {};

	(void)state;
	for (size_t i = 0; i < 2 * MEMORY_MAX / sizeof(uint64_t); i++)
		*vec_push(&numbers) = number_at(0, i);
	assert_true(anonymous_memory() > before + MEMORY_MAX + MEMORY_BESIDE);
	vec_free(&numbers);
}

static void change_somewhere(Numbers *numbers, Numbers *model)
{
	size_t i;

	if (numbers->count == 0)
		return;
	i = random_below(numbers->count);
	model->items[i] = numbers->items[i] = number_at(numbers->items[i], i);
}

/* The model is made by malloc(), so that both copies cannot be wrong in the same way. */
static void resize_both(Numbers *numbers, Numbers *model, size_t count)
{
	vec_reserve(numbers, count);
	if (model->capacity < count) {
		model->items = realloc(model->items, count * sizeof(*model->items));
		model->capacity = count;
	}
	for (size_t i = numbers->count; i < count; i++)
		model->items[i] = numbers->items[i] = number_at(count, i);
	numbers->count = model->count = count;
	if (random_below(2))
		vec_shrink(numbers);
}

/* Many arrays of all sizes that grow, shrink, go and come again, and are changed anywhere. */
static void test_against_model(void **state)
{
	Numbers numbers[40] = {}, models[ARRAY_LEN(numbers)] = {};

	(void)state;
	assert_int_equal(spill_begin(temporary_file(), "the folder", "", MIB), 0);
	for (size_t step = 0; step < 3000; step++) {
		size_t k = random_below(ARRAY_LEN(numbers));
		uint64_t what = random_below(10);

		if (what == 0) {
			vec_free(&numbers[k]);
			models[k].count = 0;
		} else if (what < 4) {
			resize_both(&numbers[k], &models[k],
				    random_below(1u << (6 + random_below(13))));
		} else {
			for (size_t i = 0; i < 50; i++)
				change_somewhere(&numbers[k], &models[k]);
		}
		assert_int_equal(numbers[k].count, models[k].count);
	}
	for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
		if (numbers[k].count > 0)
			assert_memory_equal(numbers[k].items, models[k].items,
					    numbers[k].count * sizeof(uint64_t));
		vec_free(&numbers[k]);
		free(models[k].items);
	}
	assert_true(spill_peak() > 0);
	spill_end();
}

/* After a pause, an array that grew in it is in memory, and one that did not is still in the file.
 */
static void test_pause(void **state)
{
	size_t count = 2 * MEMORY_MAX / sizeof(uint64_t);
	Numbers numbers = {}, small = {};
	uint64_t peak;

	(void)state;
	begin();
	for (size_t i = 0; i < count; i++)
		*vec_push(&numbers) = number_at(0, i);
	peak = spill_peak();
	spill_pause();
	for (size_t i = 0; i < count; i++)
		*vec_push(&small) = number_at(1, i);
	assert_int_equal(spill_peak(), peak);
	vec_reserve(&numbers, numbers.capacity + 1);
	spill_resume();
	check_numbers(&numbers, 0);
	check_numbers(&small, 1);
	vec_free(&numbers);
	vec_free(&small);
	spill_end();
}

/* An array that was given away is counted for its new owner: what comes later goes to the file. */
static void test_given_away(void **state)
{
	size_t count = MEMORY_MAX / sizeof(uint64_t) - 1000;
	Numbers numbers = {}, owner, more = {};

	(void)state;
	begin();
	vec_reserve(&numbers, count);
	owner = numbers;
	numbers.items = NULL;
	vec_free(&numbers);
	vec_reserve(&more, count);
	assert_true(spill_peak() > 0);
	vec_free(&owner);
	vec_free(&more);
	spill_end();
}

/* What a child writes is its own, however much it is. */
static void test_child(void **state)
{
	size_t count = 3 * MEMORY_MAX / sizeof(uint64_t);
	Numbers numbers = {};
	int status;
	pid_t child;

	(void)state;
	begin();
	for (size_t i = 0; i < count; i++)
		*vec_push(&numbers) = number_at(0, i);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < count; i++)
			numbers.items[i] ^= 1;
		_exit(numbers.items[count - 1] == (number_at(0, count - 1) ^ 1) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_numbers(&numbers, 0);
	vec_free(&numbers);
	spill_end();
}

/* Where a file cannot be that large, arrays stay in memory. */
static void test_file_limit(void **state)
{
	struct rlimit before, small = {.rlim_cur = MIB};
	Numbers numbers = {};

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	begin();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (size_t i = 0; i < 2 * MEMORY_MAX / sizeof(uint64_t); i++)
		*vec_push(&numbers) = number_at(0, i);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	check_numbers(&numbers, 0);
	assert_int_equal(spill_peak(), 0);
	vec_free(&numbers);
	spill_end();
}

/*
 * With a limit on address space the range is smaller: small arrays lie in the file, one that is too
 * large for it is in memory, and under a small limit there is no range.
 */
static void test_address_space(void **state)
{
	size_t count = 2 * MEMORY_MAX / sizeof(uint64_t);
	struct rlimit before, limit;
	Numbers numbers[3] = {}, large = {};
	int error;

	(void)state;
	if (!counts_memory) /* AddressSanitizer has reserved more than any limit */
		skip();
	getrlimit(RLIMIT_AS, &before);
	limit = before;
	limit.rlim_cur = 4ULL << 30;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	error = spill_begin(temporary_file(), "the folder", "", MEMORY_MAX);
	assert_int_equal(error, -ENOMEM);
	limit.rlim_cur = 16ULL << 30;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	begin();
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			*vec_push(&numbers[k]) = number_at(k, i);
	assert_true(spill_peak() > MEMORY_MAX);
	vec_reserve(&large, (300u << 20) / sizeof(uint64_t));
	large.items[large.capacity - 1] = 1;
	for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
		check_numbers(&numbers[k], k);
		vec_free(&numbers[k]);
	}
	vec_free(&large);
	spill_end();
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	begin(); /* the whole range again */
	spill_end();
}

/* A fault that is not about an array ends the program as before. */
static void test_other_fault(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit no_core = {};

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		begin();
		*(volatile int *)8 = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_larger_than_memory), cmocka_unit_test(test_small_arrays),
		cmocka_unit_test(test_one_mapping),	   cmocka_unit_test(test_without_file),
		cmocka_unit_test(test_against_model),	   cmocka_unit_test(test_pause),
		cmocka_unit_test(test_given_away),	   cmocka_unit_test(test_child),
		cmocka_unit_test(test_file_limit),	   cmocka_unit_test(test_address_space),
		cmocka_unit_test(test_other_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
