/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of each kind, of which no planted name may be left. */
#include "anonymizer.h"
#include "capture_format.h"
#include "make_record.h"
#include "record_info.h"
#include "test_tools.h"
#include <sys/socket.h>
#include <time.h>

#define SECRET "zqsecret"

/* Returns whether the bytes of the record have the secret, in one byte for a character or more. */
static bool has_secret(const struct record *record)
{
	return memmem(record, record->len, SECRET, strlen(SECRET)) ||
	       memmem(record, record->len, "z\0q\0s\0e", 7);
}

/* Learns and replaces one record, which it frees. Returns a copy of the result, or NULL. */
static struct record *replaced(struct record *record)
{
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	const struct record *other;
	struct record *copy = NULL;

	assert_int_equal(capture_check(record), CAPTURE_RECORD_GOOD);
	anonymizer_learn(anonymizer, record);
	other = anonymizer_replace(anonymizer, record);
	if (other) {
		copy = xmalloc(other->len);
		memcpy(copy, other, other->len);
	}
	free(record);
	return copy;
}

/* Returns what stands for the record, which has the secret. */
static void *hidden(struct record *record)
{
	struct record before = *record;
	struct record *other;

	assert_true(has_secret(record));
	other = replaced(record);
	assert_non_null(other);
	assert_int_equal(other->kind, before.kind);
	assert_int_equal(other->flags, before.flags);
	assert_int_equal(other->cpu, before.cpu);
	assert_true(other->ns == before.ns);
	assert_int_equal(capture_check(other), CAPTURE_RECORD_GOOD);
	assert_false(has_secret(other));
	return other;
}

static struct record *task_named(int flags, const char *comm)
{
	struct rec_task *task = make_record(REC_TASK, flags, 5, sizeof(*task), NULL, 0);

	task->tid = task->tgid = task->ns_tid = 7;
	strncpy(task->comm, comm, COMM_LEN - 1);
	return &task->h;
}

static void test_tasks(void **state)
{
	struct rec_task *task = hidden(task_named(0, SECRET));
	struct rec_exec *exec = make_record(REC_EXEC, 0, 9, sizeof(*exec), NULL, 0);
	struct record *kept;

	(void)state;
	assert_string_equal(task->comm, "thread1");
	assert_int_equal(task->tid, 7);
	kept = replaced(task_named(TASK_KTHREAD, SECRET));
	assert_true(has_secret(kept));
	strcpy(exec->comm, SECRET "-1");
	strcpy(exec->path, "/srv/" SECRET "-1");
	exec = hidden(&exec->h);
	assert_string_equal(exec->comm, "file1");
	assert_string_equal(exec->path, "/srv/file1");
	free(task);
	free(kept);
	free(exec);
}

/* What stands for a path may be longer than the path. */
static void test_long_exec(void **state)
{
	struct rec_exec *exec = make_record(REC_EXEC, 0, 9, sizeof(*exec), NULL, 0);

	(void)state;
	for (size_t i = 0; i + 10 < sizeof(exec->path); i++)
		exec->path[i] = i % 2 ? 'a' + i % 23 : '/';
	strcat(exec->path, SECRET);
	exec = hidden(&exec->h);
	assert_true(strstr(exec->path, "…/file") == exec->path);
	free(exec);
}

static void test_files(void **state)
{
	struct rec_file *file = (struct rec_file *)make_file(3, 0, "/srv/" SECRET ".so", 4096);
	struct record *kept;

	(void)state;
	file->build_id_len = 20;
	memset(file->build_id, 7, sizeof(file->build_id));
	file = hidden(&file->h);
	assert_string_equal(file->path, "/srv/file1.so");
	assert_int_equal(file->build_id_len, 0);
	assert_int_equal(file->build_id[0], 0);
	assert_int_equal(file->id, 3);
	assert_int_equal(file->base_svma, 4096);
	free(file);
	file = (struct rec_file *)make_file(3, 0, "/usr/lib/libx.so", 4096);
	file->build_id_len = 20;
	kept = replaced(&file->h);
	assert_int_equal(((struct rec_file *)kept)->build_id_len, 20);
	assert_string_equal(((struct rec_file *)kept)->path, "/usr/lib/libx.so");
	free(kept);
}

static struct record *inode_of(int flags, const char *text, size_t size)
{
	struct rec_inode *inode =
		make_record(REC_INODE, flags, 1, offsetof(struct rec_inode, text), text, size);

	inode->size = size;
	return &inode->h;
}

static void expect_inode(int flags, const char *text, size_t size, const char *wanted,
			 size_t wanted_size)
{
	struct rec_inode *inode = (struct rec_inode *)replaced(inode_of(flags, text, size));

	assert_int_equal(capture_check(&inode->h), CAPTURE_RECORD_GOOD);
	assert_int_equal(inode->size, wanted_size);
	if (wanted_size > 0)
		assert_memory_equal(inode->text, wanted, wanted_size);
	free(inode);
}

#define EXPECT_INODE(flags, text, wanted)                                                          \
	expect_inode(flags, text, sizeof(text) - 1, wanted, sizeof(wanted) - 1)

static void test_inodes(void **state)
{
	(void)state;
	EXPECT_INODE(INODE_FULL_PATH, "x.py\0" SECRET "\0srv\0", "file1.py\0dir1\0srv\0");
	EXPECT_INODE(INODE_FULL_PATH, "libx.so\0lib\0usr\0", "libx.so\0lib\0usr\0");
	/* The root of a mounted file system may be any folder. */
	EXPECT_INODE(INODE_MOUNT, "x\0lib\0", "file1\0dir1\0");
	EXPECT_INODE(0, "x\0bin\0usr\0", "file1\0dir2\0dir1\0");
	EXPECT_INODE(INODE_NO_PATH, "[eventfd]\0", "[eventfd]\0");
	EXPECT_INODE(INODE_NO_PATH, "[" SECRET "]\0", "file1\0");
	EXPECT_INODE(INODE_FULL_PATH, "memfd:" SECRET "\0", "memfd:file1\0");
	EXPECT_INODE(INODE_FULL_PATH, "memfd:/usr/" SECRET "\0", "memfd:file1\0");
	EXPECT_INODE(0, "", "");
	EXPECT_INODE(INODE_FULL_PATH, "\0", "\0");
}

static struct record *socket_of(int family, int flags, const char *text, size_t size)
{
	struct rec_socket *socket =
		make_record(REC_SOCKET, flags, 1, offsetof(struct rec_socket, text), text, size);

	socket->family = family;
	socket->size = size;
	socket->local_port = 443;
	memset(socket->local, 9, sizeof(socket->local));
	return &socket->h;
}

static void test_sockets(void **state)
{
	static const uint8_t first[4] = {240, 0, 0, 1}, zeros[16];
	struct rec_socket *socket = hidden(
		socket_of(AF_UNIX, 0, "/srv/" SECRET ".sock", strlen("/srv/" SECRET ".sock")));

	(void)state;
	assert_int_equal(socket->size, strlen("/srv/file1.sock"));
	assert_memory_equal(socket->text, "/srv/file1.sock", socket->size);
	free(socket);
	socket = hidden(socket_of(AF_UNIX, SOCKET_ABSTRACT, "\0" SECRET "\0x", 11));
	assert_memory_equal(socket->text, "@socket1", socket->size);
	free(socket);
	socket = (struct rec_socket *)replaced(socket_of(AF_INET, 0, NULL, 0));
	assert_memory_equal(socket->local, first, sizeof(first));
	assert_memory_equal(socket->remote, zeros, sizeof(zeros));
	assert_int_equal(socket->local_port, 443);
	free(socket);
	/* A text and an address that the family does not have. */
	free(hidden(socket_of(AF_INET6, 0, SECRET, strlen(SECRET))));
	socket = hidden(socket_of(AF_VSOCK, 0, SECRET, strlen(SECRET)));
	assert_memory_equal(socket->local, zeros, sizeof(zeros));
	free(socket);
}

static void test_texts(void **state)
{
	static const char args[] = "x\0--" SECRET "\0y", meta[] = "command=x " SECRET;
	static const char device[] = "dm-0\0sda1, " SECRET "\0/mnt/" SECRET,
			  loop[] = "loop0\0/" SECRET "\0";
	struct rec_args *list = make_record(REC_ARGS, 0, 1, offsetof(struct rec_args, text), args,
					    sizeof(args) - 1);
	struct rec_device *disk = make_record(REC_DEVICE, 0, 1, offsetof(struct rec_device, text),
					      device, sizeof(device));
	struct record *source = make_source("/srv/" SECRET, "int " SECRET ";", 13);
	struct record *text =
		make_record(REC_META, 0, 1, offsetof(struct rec_meta, text), meta, sizeof(meta));

	(void)state;
	list->size = sizeof(args) - 1;
	list->total = 1000;
	list = hidden(&list->h);
	assert_memory_equal(list->text, "file1\0--arg1\0arg2", list->size);
	assert_true(list->total > list->size);
	disk->size = sizeof(device);
	disk = hidden(&disk->h);
	assert_memory_equal(disk->text, "dm-0\0sda1, file1\0/mnt/file1", disk->size);
	free(disk);
	disk = make_record(REC_DEVICE, 0, 1, offsetof(struct rec_device, text), loop, sizeof(loop));
	disk->size = sizeof(loop) - 1;
	disk = hidden(&disk->h);
	assert_memory_equal(disk->text, "loop0\0/file1\0", disk->size);
	assert_null(replaced(source));
	text = hidden(text);
	assert_string_equal(((struct rec_meta *)text)->text, "command=file1 arg1");
	free(list);
	free(disk);
	free(text);
}

/* A note on a file quotes names; one on the recording has none. */
static void test_notes(void **state)
{
	static const char problem[] =
		"some names of /srv/" SECRET " are missing: no " SECRET ".dwo";
	static const char remark[] = "stacks: 3 were read from /proc";
	struct rec_note *note = make_record(REC_NOTE, 0, 1, offsetof(struct rec_note, text),
					    problem, sizeof(problem));
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	struct record *file = make_file(4, 0, "/srv/" SECRET, 0);
	const struct record *other;

	(void)state;
	note->file = 4;
	anonymizer_learn(anonymizer, file);
	anonymizer_learn(anonymizer, &note->h);
	anonymizer_replace(anonymizer, file);
	other = anonymizer_replace(anonymizer, &note->h);
	assert_string_equal(((const struct rec_note *)other)->text,
			    "some names of /srv/file1 are missing (--anonymize hides why)");
	assert_int_equal(anonymizer_counts(anonymizer).notes, 1);
	free(hidden(&note->h));
	note = make_record(REC_NOTE, 0, 1, offsetof(struct rec_note, text), remark, sizeof(remark));
	note = (struct rec_note *)replaced(&note->h);
	assert_string_equal(note->text, remark);
	free(note);
	free(file);
}

static void test_symbols(void **state)
{
	struct rec_symbol *symbol =
		(struct rec_symbol *)make_symbol(SYMBOL_NAMELESS, 2, 0x1234, 0x1000,
						 "f(lambda at /srv/" SECRET ".cc:1:2)", "[ext4]");
	static const char text[] = "\x07\0\0\0main\0/srv/" SECRET ".c";
	struct rec_symbol *placed = make_record(REC_SYMBOL, 0, 1, offsetof(struct rec_symbol, text),
						text, sizeof(text));

	(void)state;
	symbol->function_size = 77;
	symbol = hidden(&symbol->h);
	assert_string_equal(symbol->text + 4, "f(lambda at /srv/file1.cc:1:2)");
	assert_string_equal(symbol->text + symbol->lib, "[ext4]");
	assert_int_equal(symbol->file, 2);
	assert_int_equal(symbol->function_size, 77);
	assert_true(symbol->address == 0x1234 && symbol->function == 0x1000);
	placed->count = 1;
	placed = hidden(&placed->h);
	assert_memory_equal(placed->text, "\x07\0\0\0main\0/srv/file1.c", 22);
	free(symbol);
	free(placed);
}

static void test_scripts(void **state)
{
	(void)state;
	for (int kind = 1; kind <= 4; kind *= 2) {
		static const char path[] = "/srv/" SECRET ".py";
		struct rec_script_code *code =
			make_record(REC_SCRIPT_CODE, 0, 1, sizeof(*code), "table", 5);

		code->path_kind = kind;
		code->path_bytes = kind * strlen(path);
		code->table_bytes = 5;
		for (size_t i = 0; i < strlen(path); i++)
			code->path[i * kind] = path[i];
		code = (struct rec_script_code *)replaced(&code->h);
		assert_false(has_secret(&code->h));
		assert_null(memmem(code, code->h.len, "z\0\0\0q", 5));
		assert_int_equal(code->path_kind, 1);
		assert_int_equal(code->path_bytes, strlen("/srv/file1.py"));
		assert_memory_equal(code->path, "/srv/file1.py", code->path_bytes);
		assert_memory_equal(code->table, "table", 5);
		free(code);
	}
}

static struct record *device_of(const char *text, size_t size)
{
	struct rec_device *device =
		make_record(REC_DEVICE, 0, 1, offsetof(struct rec_device, text), text, size);

	device->size = size;
	return &device->h;
}

/* Learns the records, and returns a copy of what stands for the function. It frees all of them. */
static struct rec_script_code *function_after(struct record *records[], size_t count,
					      const char *path, const char *name)
{
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	struct rec_script_code *code = make_record(REC_SCRIPT_CODE, 0, 1, sizeof(*code), NULL, 0);
	struct rec_script_code *copy = xmalloc(sizeof(*code));

	code->path_kind = code->name_kind = 1;
	code->path_bytes = strlen(path);
	memcpy(code->path, path, strlen(path));
	code->name_bytes = strlen(name);
	memcpy(code->name, name, strlen(name));
	anonymizer_learn(anonymizer, &code->h);
	for (size_t i = 0; i < count; i++)
		anonymizer_learn(anonymizer, records[i]);
	memcpy(copy, anonymizer_replace(anonymizer, &code->h), sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		free(records[i]);
	free(code);
	return copy;
}

/* Programs make names of functions of data: of paths, and with the names of users and hosts. */
static void test_script_functions(void **state)
{
	static const char *const cases[][3] = {
		{"/srv/x.py", "load", "load"},
		{"/srv/x.py", "Client.__init__.<locals>.<lambda>",
		 "Client.__init__.<locals>.<lambda>"},
		{"/srv/x.py", "get /srv/" SECRET ".csv", "get /srv/file2.csv"},
		{"/home/" SECRET "/x.py", "sync_" SECRET, "sync_dir1"},
		{"/home/" SECRET "/x.py", SECRET "s.run", SECRET "s.run"},
		{"/home/jane.doe/x.py", "Jobs.of<jane.doe>", "Jobs.of<dir1>"},
		{"/srv/x.py", "ping(" SECRET ".example.org)", "ping(host1)"},
		{"/srv/x.py", "ping_" SECRET, "ping_" SECRET},
		/* A function of Python's library is called as it is. */
		{"/usr/lib/python3.11/queue.py", SECRET, SECRET},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		static const char host[] = "hostname=" SECRET ".example.org";
		struct record *meta = make_record(REC_META, 0, 1, offsetof(struct rec_meta, text),
						  host, sizeof(host));
		struct rec_script_code *code = function_after(&meta, 1, cases[i][0], cases[i][1]);
		_cleanup_free_ char *name = xstrndup((const char *)code->name, code->name_bytes);

		assert_string_equal(name, cases[i][2]);
		assert_int_equal(code->name_kind, 1);
		assert_int_equal(capture_check(&code->h), CAPTURE_RECORD_GOOD);
		free(code);
	}
}

/* Returns the seconds of CPU time that it takes to replace a record of so many short parts. */
static double seconds_of(int kind, size_t parts)
{
	static char text[UINT16_MAX];
	clock_t begin;

	if (kind == REC_INODE) {
		for (size_t i = 0; i < parts; i++)
			memcpy(text + 2 * i, "x", 2);
	} else {
		memcpy(text, "x\0", 2);
		for (size_t i = 0; i < parts; i++)
			memcpy(text + 2 + 2 * i, "y,", 2);
		text[2 + 2 * parts] = '\0';
	}
	begin = clock();
	for (size_t done = 0; done < 1 << 18; done += parts) {
		if (kind == REC_INODE)
			free(replaced(inode_of(INODE_FULL_PATH, text, 2 * parts)));
		else
			free(replaced(device_of(text, 3 + 2 * parts)));
	}
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* As many parts in long records take as long as in short ones; with squares it is 16 times as long.
 */
static void test_long_records(void **state)
{
	static const int kinds[] = {REC_INODE, REC_DEVICE};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		double few = seconds_of(kinds[i], 1500), many = seconds_of(kinds[i], 24000);

		print_message("kind %d: %.3f s, in long records %.3f s\n", kinds[i], few, many);
		assert_true(many < 2 * few + 0.1);
	}
}

/* Kinds without names are passed on as they are; what is not known is not passed on. */
static void test_kinds(void **state)
{
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	size_t kept = 0, unknown = 0;

	(void)state;
	for (int kind = 0; kind < 256; kind++) {
		uint16_t size = record_info(kind)->fixed_size;
		struct record *record =
			make_record(kind, 0, 1, MAX(size, sizeof(*record)) + 16, NULL, 0);
		const struct record *other;

		if (size > 0 && capture_check(record) != CAPTURE_RECORD_GOOD) {
			free(record);
			continue;
		}
		anonymizer_learn(anonymizer, record);
		other = anonymizer_replace(anonymizer, record);
		if (size == 0)
			assert_null(other);
		unknown += size == 0;
		kept += other == record;
		free(record);
	}
	assert_int_equal(anonymizer_counts(anonymizer).unknown, unknown);
	expect_between(kept, 17, 25);
	expect_between(unknown, 200, 230);
}

static void test_mark(void **state)
{
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	const struct record *mark = anonymizer_mark(anonymizer, REC_META);

	(void)state;
	assert_int_equal(capture_check(mark), CAPTURE_RECORD_GOOD);
	assert_true(strstr(((const struct rec_meta *)mark)->text, "anonymized=") ==
		    ((const struct rec_meta *)mark)->text);
	mark = anonymizer_mark(anonymizer, REC_NOTE);
	assert_int_equal(mark->kind, REC_NOTE);
	assert_int_equal(capture_check(mark), CAPTURE_RECORD_GOOD);
}

/* The user selects by true names. */
static void test_filter(void **state)
{
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	static const char *const comms[] = {"alpha", "alpine", "beta", "a,b*"};
	static const char *const filters[][2] = {
		{"alpha", "thread1"},
		{"al*", "thread1,thread2"},
		{"beta,12", "thread3,12"},
		{"thread1", ""},
		{"a?b\\*", "thread4"},
		{"kswapd*", "kswapd0"},
		{"*[ae]ta,alpha", "thread3,thread1"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(comms); i++) {
		_cleanup_free_ struct record *task = task_named(0, comms[i]);

		anonymizer_learn(anonymizer, task);
	}
	_cleanup_free_ struct record *kernel = task_named(TASK_KTHREAD, "kswapd0");

	anonymizer_learn(anonymizer, kernel);
	assert_null(anonymizer_filter(anonymizer, NULL));
	for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
		_cleanup_free_ char *got = anonymizer_filter(anonymizer, filters[i][0]);

		assert_string_equal(got, filters[i][1]);
	}
}

/* The replacement of a thread's name may be longer than the name, and is cut as names are. */
static void test_filter_cut(void **state)
{
	_cleanup_(anonymizer_freep) Anonymizer *anonymizer = anonymizer_new();
	_cleanup_free_ struct record *task = task_named(0, "j.service");
	_cleanup_free_ char *got = NULL, *wanted = NULL;
	const struct rec_task *other;

	(void)state;
	for (char name[] = "a.service"; *name <= 'j'; ++*name) {
		_cleanup_free_ struct record *before = task_named(0, name);

		anonymizer_learn(anonymizer, before);
	}
	got = anonymizer_filter(anonymizer, "j.service");
	other = (const struct rec_task *)anonymizer_replace(anonymizer, task);
	assert_string_equal(other->comm, "thread10.servic");
	wanted = xasprintf("thread10.service,%s", other->comm);
	assert_string_equal(got, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks),	     cmocka_unit_test(test_long_exec),
		cmocka_unit_test(test_files),	     cmocka_unit_test(test_inodes),
		cmocka_unit_test(test_sockets),	     cmocka_unit_test(test_texts),
		cmocka_unit_test(test_notes),	     cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_scripts),	     cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_mark),	     cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_cut),   cmocka_unit_test(test_script_functions),
		cmocka_unit_test(test_long_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
