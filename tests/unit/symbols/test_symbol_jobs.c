/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Children that crash, hang and lie: symbol_child_find is a function that does what the file under
 * its hand says, in the sandbox that the real one has.
 */
#include "object_names.h"
#include "symbol_child.h"
#include "symbol_jobs.h"
#include "symbol_record.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define SOCKET	   3 /* the child's end: see sandbox.c */
#define ADDRESSES  8
#define KEPT	   3 /* names that a child sends before it goes wrong */
#define TAKEN_OVER "its reader sent invalid data (taken over by the file?)"
#define TOO_LONG   "reading it took too long"
#define GAVE_UP	   "its reader ended with status"
#define CRASHED	   "its reader crashed"

/* It may not signal even itself; what abort() does then is glibc's or the sanitizer's affair. */
#ifdef __SANITIZE_ADDRESS__
#define ABORTED GAVE_UP
#else
#define ABORTED CRASHED
#endif

/* ---- in the child: what can go wrong --------------------------------------------------- */

static const ObjectHost *own_host;
static const ObjectRequest *own_request;

static void send_name(uint64_t address, const char *name)
{
	SymbolRecord record = {};

	symbol_record_begin(&record, address);
	symbol_record_add(&record, name, "", 0);
	own_host->emit(own_host->user, symbol_record_finish(&record, NULL));
	symbol_record_free(&record);
}

static void send_raw(uint32_t type, uint32_t stated, const void *data, size_t size)
{
	struct symbol_message_head head = {.len = stated, .type = type};

	sandbox_send(SOCKET, &head, sizeof(head), -1);
	sandbox_send(SOCKET, data, size, -1);
}

/* A good symbol of the first address, to be spoilt. */
static struct rec_symbol *good_symbol(SymbolRecord *record)
{
	symbol_record_begin(record, own_request->addresses[0]);
	symbol_record_add(record, "spoilt", "", 0);
	return symbol_record_finish(record, NULL);
}

/* What was emitted is on its way before what follows. */
static void flush(void)
{
	own_host->flush(own_host->user);
}

static int do_well(void)
{
	for (size_t i = 0; i < own_request->count; i++)
		send_name(own_request->addresses[i], "well");
	return 0;
}

static int do_fail(void)
{
	return -ESTALE;
}

static int *volatile nowhere = (int *)16;

static int do_segv(void)
{
	flush();
	*nowhere = 1;
	return 0;
}

static int do_abort(void)
{
	flush();
	abort();
}

static volatile unsigned depth_max = UINT32_MAX;

__attribute__((noinline)) static int recurse(unsigned depth)
{
	volatile char here[4096];

	here[0] = depth;
	return depth < depth_max ? recurse(depth + 1) + here[0] : 0;
}

static int do_overflow(void)
{
	flush();
	return recurse(0);
}

static int do_spin(void)
{
	flush();
	for (;;)
		__asm__ volatile("");
	return 0;
}

static int do_sleep(void)
{
	uint8_t byte;
	int fd;

	flush();
	sandbox_receive(SOCKET, &byte, 1, &fd); /* nothing will come */
	return 0;
}

/* Its end of the socket is closed, but it does not end. */
static int do_hide(void)
{
	static int word;

	flush();
	close(SOCKET);
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
	return 0;
}

static int do_exit(void)
{
	flush();
	_exit(0);
}

static int do_unsafe(void)
{
	flush();
	syscall(SYS_exit_group, SANDBOX_UNSAFE); /* _exit() of a sanitizer has its own idea */
	return 0;
}

static int do_unknown_type(void)
{
	flush();
	send_raw(4711, 8, "12345678", 8);
	return 0;
}

static int do_too_long(void)
{
	flush();
	send_raw(SYMBOL_MESSAGE_SYMBOL, SYMBOL_MESSAGE_MAX + 8, "12345678", 8);
	return 0;
}

static int do_unaligned(void)
{
	SymbolRecord record = {};
	struct rec_symbol *symbol = good_symbol(&record);

	flush();
	send_raw(SYMBOL_MESSAGE_SYMBOL, symbol->h.len - 1, symbol, symbol->h.len - 1);
	return 0;
}

/* A head that promises more than there is. */
static int do_half(void)
{
	SymbolRecord record = {};
	struct rec_symbol *symbol = good_symbol(&record);

	flush();
	send_raw(SYMBOL_MESSAGE_SYMBOL, symbol->h.len, symbol, symbol->h.len - 8);
	_exit(0);
}

#define SPOIL(name, statement)                                                                     \
	static int name(void)                                                                      \
	{                                                                                          \
		SymbolRecord record = {};                                                          \
		struct rec_symbol *symbol = good_symbol(&record);                                  \
		uint32_t size = symbol->h.len;                                                     \
                                                                                                   \
		flush();                                                                           \
		statement;                                                                         \
		send_raw(SYMBOL_MESSAGE_SYMBOL, size, symbol, size);                               \
		return 0;                                                                          \
	}
SPOIL(do_foreign_address, symbol->address++)
SPOIL(do_foreign_file, symbol->file = 1)
SPOIL(do_foreign_lib, symbol->lib = 4)
SPOIL(do_foreign_kind, symbol->h.kind = REC_NOTE)
SPOIL(do_no_frames, symbol->count = 0)
SPOIL(do_many_frames, symbol->count = 1000000)
SPOIL(do_other_length, symbol->h.len -= 8)
SPOIL(do_long_length, symbol->h.len += 8)
SPOIL(do_endless_text, memset(symbol->text, 'x', size - offsetof(struct rec_symbol, text)))
SPOIL(do_no_record, size = 8)
SPOIL(do_empty, size = 0)

static int do_short_end(void)
{
	flush();
	send_raw(SYMBOL_MESSAGE_END, 0, "", 0);
	return 0;
}

/* A result that object_names_find() cannot have. */
static int do_wrong_end(void)
{
	int64_t result = 12345678;

	flush();
	send_raw(SYMBOL_MESSAGE_END, sizeof(result), &result, sizeof(result));
	return 0;
}

static int do_short_find(void)
{
	flush();
	send_raw(SYMBOL_MESSAGE_FIND, 8, "12345678", 8);
	return 0;
}

static int do_endless_find_name(void)
{
	Companion companion = {.kind = COMPANION_DEBUG};

	flush();
	memset(companion.name, 'x', sizeof(companion.name));
	own_host->find(own_host->user, &companion);
	return 0;
}

static int do_long_build_id(void)
{
	Companion companion = {.kind = COMPANION_DWZ, .build_id_len = 21};

	flush();
	own_host->find(own_host->user, &companion);
	return 0;
}

static int do_ask_endlessly(void)
{
	Companion companion = {.kind = COMPANION_DEBUG, .name = "other"};

	for (;;)
		own_host->find(own_host->user, &companion);
	return 0;
}

static int do_flood(void)
{
	flush();
	for (;;)
		send_name(own_request->addresses[0], "flood");
	return 0;
}

static const struct behaviour {
	const char *name;
	int (*act)(void);
	const char *warning; /* the expected warning, or its beginning; NULL: none */
	int result;
	bool slow; /* takes as long as it may */
} behaviours[] = {
	{"well", do_well, NULL, 0, false},
	{"fail", do_fail, NULL, -ESTALE, false},
	{"segv", do_segv, CRASHED " (Segmentation fault)", 0, false},
	{"abort", do_abort, ABORTED, 0, false},
	{"overflow", do_overflow, CRASHED " (Segmentation fault)", 0, false},
	{"spin", do_spin, TOO_LONG, 0, true},
	{"sleep", do_sleep, TOO_LONG, 0, true},
	{"hide", do_hide, TOO_LONG, 0, true},
	{"exit", do_exit, GAVE_UP, 0, false},
	{"unsafe", do_unsafe, "its reader could not be sandboxed (seccomp, setrlimit)", 0, false},
	{"unknown type", do_unknown_type, TAKEN_OVER, 0, false},
	{"too long", do_too_long, TAKEN_OVER, 0, false},
	{"unaligned", do_unaligned, TAKEN_OVER, 0, false},
	{"half", do_half, GAVE_UP, 0, false},
	{"foreign address", do_foreign_address, TAKEN_OVER, 0, false},
	{"foreign file", do_foreign_file, TAKEN_OVER, 0, false},
	{"foreign lib", do_foreign_lib, TAKEN_OVER, 0, false},
	{"foreign kind", do_foreign_kind, TAKEN_OVER, 0, false},
	{"no frames", do_no_frames, TAKEN_OVER, 0, false},
	{"many frames", do_many_frames, TAKEN_OVER, 0, false},
	{"other length", do_other_length, TAKEN_OVER, 0, false},
	{"long length", do_long_length, TAKEN_OVER, 0, false},
	{"endless text", do_endless_text, TAKEN_OVER, 0, false},
	{"no record", do_no_record, TAKEN_OVER, 0, false},
	{"empty", do_empty, TAKEN_OVER, 0, false},
	{"short end", do_short_end, TAKEN_OVER, 0, false},
	{"wrong end", do_wrong_end, TAKEN_OVER, 0, false},
	{"short find", do_short_find, TAKEN_OVER, 0, false},
	{"endless find name", do_endless_find_name, TAKEN_OVER, 0, false},
	{"long build id", do_long_build_id, TAKEN_OVER, 0, false},
	{"ask endlessly", do_ask_endlessly, TAKEN_OVER, 0, false},
	{"flood", do_flood, TAKEN_OVER, 0, false},
};

/* The file has the index of the behaviour, as text. Names of the first addresses come before it. */
static int find_by_behaviour(const ObjectRequest *request, const ObjectHost *host)
{
	char text[16] = "";

	own_request = request;
	own_host = host;
	if (pread(request->fd, text, sizeof(text) - 1, 0) <= 0)
		return -EIO;
	for (size_t i = 0; i < KEPT; i++)
		send_name(request->addresses[i], "kept");
	return behaviours[atoi(text)].act();
}

/* ---- in the parent ----------------------------------------------------------------------- */

static const uint64_t addresses[ADDRESSES] = {16, 32, 48, 64, 80, 96, 112, 1ULL << 40};

static SymbolJob make_job(size_t behaviour)
{
	_cleanup_free_ char *text = xasprintf("%zu", behaviour);
	int fd = memfd_create("behaviour", MFD_CLOEXEC);

	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	return (SymbolJob){
		.request = {.fd = fd, .debug_fd = -1, .addresses = addresses, .count = ADDRESSES}};
}

static void free_jobs(SymbolJob *jobs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		close(jobs[i].request.fd);
		symbol_job_free(&jobs[i]);
	}
}

static int find_nothing(void *user, SymbolJob *job, const Companion *companion)
{
	(void)user;
	(void)job;
	(void)companion;
	return -ENOENT;
}

static const char *name_of(const SymbolJob *job, size_t i)
{
	const struct rec_symbol *symbol = symbol_job_answer(job, i);

	return symbol ? symbol->text + sizeof(uint32_t) : "";
}

static void check_job(const SymbolJob *job, const struct behaviour *behaviour)
{
	if (!behaviour->warning && job->problem)
		fail_msg("%s: %s", behaviour->name, job->problem);
	if (behaviour->warning && (!job->problem || strncmp(job->problem, behaviour->warning,
							    strlen(behaviour->warning))))
		fail_msg("%s: reported is: %s", behaviour->name,
			 job->problem ? job->problem : "nothing");
	if (!behaviour->warning)
		assert_int_equal(job->result, behaviour->result);
	for (size_t i = 0; i < ADDRESSES; i++) {
		const char *wanted = behaviour->act == do_well ? "well" : i < KEPT ? "kept" : "";

		if (behaviour->act == do_flood && i == 0)
			wanted = "flood";
		if (strcmp(name_of(job, i), wanted))
			fail_msg("%s: address %zu is \"%s\"", behaviour->name, i, name_of(job, i));
	}
}

/* All at once, so that each goes wrong beside others; in another order each time. */
static void test_all_behaviours(void **state)
{
	SymbolJobsOptions options = {.parallel = 8, .seconds = 1, .find = find_nothing};
	size_t order[ARRAY_LEN(behaviours)], before = count_descriptors();
	SymbolJob jobs[ARRAY_LEN(behaviours)];
	uint64_t began = now_ns();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(behaviours); i++)
		order[i] = i;
	for (size_t i = ARRAY_LEN(behaviours) - 1; i > 0; i--) {
		size_t other = random_below(i + 1), kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
	for (size_t i = 0; i < ARRAY_LEN(behaviours); i++)
		jobs[i] = make_job(order[i]);
	symbol_jobs_run(jobs, ARRAY_LEN(behaviours), &options);
	for (size_t i = 0; i < ARRAY_LEN(behaviours); i++)
		check_job(&jobs[i], &behaviours[order[i]]);
	free_jobs(jobs, ARRAY_LEN(behaviours));
	/* No zombie, no descriptor; nothing took much longer than it may. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(count_descriptors(), before);
	assert_true(now_ns() - began < 60 * NSEC_PER_SEC);
}

/* The truth altered: a good child counted as a bad one would be seen. */
static void test_good_ones_are_good(void **state)
{
	SymbolJobsOptions options = {.seconds = 10, .find = find_nothing};
	SymbolJob jobs[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		jobs[i] = make_job(0);
	symbol_jobs_run(jobs, ARRAY_LEN(jobs), &options);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		check_job(&jobs[i], &behaviours[0]);
	free_jobs(jobs, ARRAY_LEN(jobs));
	symbol_jobs_run(NULL, 0, &options);
}

/* No descriptor is left for a socket: it is reported, and only these names are lost. */
static void test_no_process(void **state)
{
	SymbolJobsOptions options = {.seconds = 10, .find = find_nothing};
	SymbolJob job = make_job(0);
	VEC(int) taken = {};
	int fd;

	(void)state;
	while ((fd = dup(job.request.fd)) >= 0)
		*vec_push(&taken) = fd;
	symbol_jobs_run(&job, 1, &options);
	for (size_t i = 0; i < taken.count; i++)
		close(taken.items[i]);
	vec_free(&taken);
	assert_string_equal(job.problem, "starting its reader failed: Too many open files");
	assert_null(symbol_job_answer(&job, 0));
	free_jobs(&job, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_behaviours),
		cmocka_unit_test(test_good_ones_are_good),
		cmocka_unit_test(test_no_process),
	};

	symbol_child_find = find_by_behaviour;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
