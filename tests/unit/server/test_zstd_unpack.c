/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What zstd has compressed comes back byte for byte, and what is damaged not at all. */
#include "test_tools.h"
#include "zstd_unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <zstd.h>

typedef VEC(char) Bytes;

/* Appends a frame; its checksum shows any damage. */
static void add_frame(Bytes *packed, const char *text, size_t size)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t got;

	assert_non_null(context);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	vec_reserve(packed, packed->count + ZSTD_compressBound(size));
	got = ZSTD_compress2(context, packed->items + packed->count, ZSTD_compressBound(size), text,
			     size);
	assert_false(ZSTD_isError(got));
	packed->count += got;
	ZSTD_freeCCtx(context);
}

static char *folder; /* one for all tests: to remove it takes two processes */

static int unpack(const char *data, size_t size, int *ret_fd)
{
	_cleanup_free_ char *path = xasprintf("%s/file", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write_all(fd, data, size), 0);
	close(fd);
	return zstd_unpack_open(path, ret_fd);
}

static void expect(const Bytes *packed, const char *text, size_t size)
{
	_cleanup_free_ char *got = xmalloc(size + 1);
	int fd;

	assert_int_equal(unpack(packed->items, packed->count, &fd), 0);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, got, size + 1, 0), size);
	assert_memory_equal(got, text, size);
	close(fd);
}

static char *make_text(size_t size)
{
	char *text = xmalloc(size + 1);

	for (size_t i = 0; i < size; i++)
		text[i] = "{}[]:,x1"[random_below(8)];
	return text;
}

/* Whatever falls together with the ends of the pieces that are read and written. */
static void test_sizes(void **state)
{
	size_t piece = ZSTD_DStreamOutSize();
	const size_t sizes[] = {0,	   1,	      piece - 1,     piece,
				piece + 1, 2 * piece, 7 * piece + 5, random_below(10 * piece)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		_cleanup_free_ char *text = make_text(2 * sizes[i]);
		Bytes packed = {};

		add_frame(&packed, text, sizes[i]);
		expect(&packed, text, sizes[i]);
		add_frame(&packed, text + sizes[i], sizes[i]);
		expect(&packed, text, 2 * sizes[i]);
		vec_free(&packed);
	}
}

static void test_damaged(void **state)
{
	enum { SIZE = 1000 };
	_cleanup_free_ char *text = make_text(SIZE);
	Bytes packed = {};
	int fd;

	(void)state;
	add_frame(&packed, text, SIZE);
	for (size_t i = 4; i < packed.count; i++) {
		char bit = 1 << random_below(8);

		assert_int_equal(unpack(packed.items, i, &fd), -EBADMSG);
		packed.items[i] ^= bit;
		if (unpack(packed.items, packed.count, &fd) == 0) { /* a bit that is not read */
			_cleanup_free_ char *got = xmalloc(SIZE + 1);

			assert_int_equal(pread(fd, got, SIZE + 1, 0), SIZE);
			assert_memory_equal(got, text, SIZE);
		}
		closep(&fd);
		packed.items[i] ^= bit;
	}
	vec_free(&packed);
}

static void test_others(void **state)
{
	static const char *const texts[] = {"",		 "{", "{}", "\x1f\x8b\b", "\x28\xb5\x2f",
					    "plain text"};
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(unpack(texts[i], strlen(texts[i]), &fd), 0);
		assert_int_equal(fd, -1);
	}
	assert_int_equal(zstd_unpack_open("/nowhere/to/be/found", &fd), 0);
	assert_int_equal(fd, -1);
}

static int set_up(void **state)
{
	(void)state;
	folder = make_folder();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove_folder(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
