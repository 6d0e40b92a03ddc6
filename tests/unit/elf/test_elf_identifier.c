/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The child that reads build ids crashes, hangs or lies: in the sandbox a function that does what
 * the file says, if it is no ELF file, replaces elf_identify().
 */
#include "elf_identifier.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SELF   "/proc/self/exe"
#define SOCKET 3 /* the child's end: see sandbox.c */

static int *volatile nowhere = (int *)16;

/* More segments than there can be. */
static void claim_much(ElfIdentity *identity)
{
	vec_reserve(&identity->loads, ELF_LOADS_MAX + 1);
	identity->loads.count = ELF_LOADS_MAX + 1;
	memset(identity->loads.items, 0, identity->loads.count * sizeof(*identity->loads.items));
}

/* An ElfIdentify. */
static int identify_by_behaviour(int fd, ElfIdentity *ret_identity)
{
	char behaviour = '\0';

	if (pread(fd, &behaviour, 1, 0) != 1)
		return -EIO;
	switch (behaviour) {
	case 'c':
		*nowhere = 1;
		break;
	case 'a':
		abort();
	case 's': /* spins */
		for (;;)
			__asm__ volatile("");
	case 'e':
		_exit(0);
	case 'h': /* half an answer, and no more */
		if (write(SOCKET, "1234", 4) != 4)
			_exit(1);
		for (;;)
			__asm__ volatile("");
	case 'm':
		claim_much(ret_identity);
		return 0;
	case 'p': /* a result that it cannot have */
		return 17;
	case 'b':
		ret_identity->build_id_len = 21;
		return 0;
	default:
		return elf_identify(fd, ret_identity);
	}
	return 0;
}

/* The build id of a file, by readelf. */
static char *true_build_id(void)
{
	return output_of("readelf -n /proc/%d/exe | sed -n 's/.*Build ID: //p' | tr -d '\\n'",
			 getpid());
}

static void check_self(ElfIdentifier *identifier)
{
	_cleanup_free_ char *wanted = true_build_id();
	_cleanup_close_ int fd = open(SELF, O_RDONLY);
	char found[41] = "";
	ElfIdentity identity;

	assert_int_equal(elf_identifier_identify(identifier, fd, &identity), 0);
	for (size_t i = 0; i < identity.build_id_len; i++)
		snprintf(found + 2 * i, 3, "%02x", identity.build_id[i]);
	assert_string_equal(found, wanted);
	assert_true(identity.loads.count >= 2);
	elf_identity_free(&identity);
}

static int ask_behaviour(ElfIdentifier *identifier, char behaviour)
{
	_cleanup_close_ int fd = memfd_create("behaviour", MFD_CLOEXEC);
	ElfIdentity identity;
	int r;

	assert_int_equal(write(fd, &behaviour, 1), 1);
	r = elf_identifier_identify(identifier, fd, &identity);
	assert_int_equal(identity.loads.count, 0);
	assert_int_equal(identity.build_id_len, 0);
	elf_identity_free(&identity);
	return r;
}

static void test_next_file_works(void **state)
{
	static const struct {
		char behaviour;
		int wanted;
	} behaviours[] = {
		{'c', -EIO}, {'a', -EIO}, {'s', -ETIME}, {'e', -EIO},	 {'h', -ETIME},
		{'m', -EIO}, {'p', -EIO}, {'b', -EIO},	 {'x', -ENOEXEC} /* text, no behaviour */};
	ElfIdentifier *identifier = elf_identifier_new(identify_by_behaviour);

	(void)state;
	check_self(identifier);
	for (int round = 0; round < 20; round++) {
		size_t i = round < (int)ARRAY_LEN(behaviours) ? (size_t)round
							      : random_below(ARRAY_LEN(behaviours));
		int r = ask_behaviour(identifier, behaviours[i].behaviour);

		if (r != behaviours[i].wanted)
			fail_msg("behaviour %c: %d", behaviours[i].behaviour, r);
		if (random_below(2))
			check_self(identifier);
	}
	check_self(identifier);
	elf_identifier_free(identifier);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static double children_cpu_seconds(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Many files that take forever do not hold up the recorder for as many times the longest wait. */
static void test_timeout_ends(void **state)
{
	ElfIdentifier *identifier = elf_identifier_new(identify_by_behaviour);
	double before = children_cpu_seconds();

	(void)state;
	for (int i = 0; i < 20; i++)
		assert_int_equal(ask_behaviour(identifier, 's'), -ETIME);
	assert_true(children_cpu_seconds() - before < 5);
	check_self(identifier);
	elf_identifier_free(identifier);
}

/*
 * A child that gets no CPU for a while is not one that hangs: it is stopped, and goes on a little
 * later.
 */
static void test_starved(void **state)
{
	ElfIdentifier *identifier = elf_identifier_new(identify_by_behaviour);
	_cleanup_free_ char *child = NULL;
	uint64_t began;
	pid_t waker;

	(void)state;
	check_self(identifier);
	child = output_of("pgrep -P %d -x test_elf_identi", getpid());
	assert_int_equal(kill(atoi(child), SIGSTOP), 0);
	waker = fork();
	if (waker == 0) {
		usleep(1500000);
		_exit(kill(atoi(child), SIGCONT) ? 1 : 0);
	}
	began = now_ns();
	check_self(identifier);
	assert_true(now_ns() - began > NSEC_PER_SEC);
	assert_int_equal(waitpid(waker, NULL, 0), waker);
	elf_identifier_free(identifier);
}

/* Children that never go on: the wall's time that they all together may cost is bounded. */
static void test_blocked(void **state)
{
	ElfIdentifier *identifier = elf_identifier_new(identify_by_behaviour);
	uint64_t blocked_ns = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		_cleanup_free_ char *child = NULL;
		uint64_t began;

		check_self(identifier);
		child = output_of("pgrep -P %d -x test_elf_identi", getpid());
		assert_int_equal(kill(atoi(child), SIGSTOP), 0);
		began = now_ns();
		assert_int_equal(ask_behaviour(identifier, 'x'), -ETIME);
		blocked_ns += now_ns() - began;
	}
	check_self(identifier);
	elf_identifier_free(identifier);
	/* 4 s to spare; 0.5, 0.25, 0.125, 0.1 s for each; and what looking and the machine add. */
	assert_uint_in_range(blocked_ns, 4 * NSEC_PER_SEC, 7 * NSEC_PER_SEC);
}

/* One child reads all files, and is replaced if it is killed. */
static void test_killed(void **state)
{
	ElfIdentifier *identifier = elf_identifier_new(identify_by_behaviour);
	_cleanup_free_ char *first = NULL, *second = NULL, *third = NULL;

	(void)state;
	check_self(identifier);
	first = output_of("pgrep -P %d -x test_elf_identi", getpid());
	check_self(identifier);
	second = output_of("pgrep -P %d -x test_elf_identi", getpid());
	assert_string_equal(first, second);
	assert_int_equal(kill(atoi(first), SIGKILL), 0);
	usleep(100000);
	assert_int_equal(ask_behaviour(identifier, 'x'), -EPIPE);
	check_self(identifier);
	third = output_of("pgrep -P %d -x test_elf_identi", getpid());
	assert_string_not_equal(first, third);
	elf_identifier_free(identifier);
	elf_identifier_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_file_works), cmocka_unit_test(test_timeout_ends),
		cmocka_unit_test(test_starved),		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
