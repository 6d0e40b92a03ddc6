/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_fixture.h"
#include "table_builder.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

/* Those that are shared with children. */
static size_t count_maps(void)
{
	_cleanup_free_ char *text =
		output_of("grep -c 'rw-s.*/dev/zero' /proc/%d/maps || true", getpid());

	return strtoul(text, NULL, 10);
}

void start_service(Fixture *fixture)
{
	assert_int_equal(table_service_new(&fixture->options, &fixture->service), 0);
}

static void check_nothing_left(const Fixture *fixture)
{
	assert_int_equal(count_descriptors(), fixture->fds);
	assert_int_equal(count_maps(), fixture->maps);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

void stop_service(Fixture *fixture)
{
	table_service_free(fixture->service);
	fixture->service = NULL;
	check_nothing_left(fixture);
}

int table_fixture_set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fake_table_builder_use();
	fixture->options.timeout_ns = TIMEOUT_NS;
	fixture->fds = count_descriptors();
	fixture->maps = count_maps();
	*state = fixture;
	return 0;
}

int table_fixture_tear_down(void **state)
{
	Fixture *fixture = *state;

	table_service_free(fixture->service);
	free(fixture);
	return 0;
}

int make_object(const struct behaviour *behaviour)
{
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(header)};
	int fd = memfd_create("object", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, behaviour, sizeof(*behaviour)), sizeof(*behaviour));
	/* As large as files with so many rows are. */
	if (behaviour->rows > 1000)
		assert_int_equal(ftruncate(fd, behaviour->rows), 0);
	return fd;
}

void want_fd(Fixture *fixture, uint32_t id, int fd)
{
	table_service_request(fixture->service, &(TableRequest){
							.id = id,
							.fd = fd,
							.base_svma = BASE_SVMA,
						});
}

void want_object(Fixture *fixture, uint32_t id, char what)
{
	Object *object = &fixture->objects[id];
	_cleanup_close_ int fd = -1;

	object->behaviour = (struct behaviour){
		.what = what, .rows = 3 + random_below(900), .seed = random_below(1 << 30)};
	fd = make_object(&object->behaviour);
	want_fd(fixture, id, fd);
}

bool is_right(const Object *object, const UnwindTable *table)
{
	UnwindTable truth = table_of_behaviour(object->wanted == 'b'   ? &object->by_build_id
					       : object->wanted == 'l' ? &object->by_link
								       : &object->behaviour);
	bool right = same_tables(table, &truth);

	unwind_table_free(&truth);
	return right;
}

void on_ready(void *user, uint32_t id, const UnwindTable *table, int error, int debug)
{
	Fixture *fixture = user;
	Object *object = &fixture->objects[id];

	assert_true(id > 0 && id <= OBJECTS_MAX);
	assert_true(table ? error == 0 : error < 0);
	object->answers++;
	object->error = error;
	object->debug = debug;
	object->right = table && is_right(object, table);
	fixture->order[fixture->answered++] = id;
	if (table && fixture->look)
		fixture->look(table);
	if (fixture->next) {
		uint32_t next = fixture->next;

		fixture->next = 0;
		want_object(fixture, next, 'g');
	}
}

void await_all(Fixture *fixture)
{
	assert_int_equal(
		table_service_wait(fixture->service, now_ns() + LONG_NS, on_ready, fixture), 0);
}

void check_answer(const Fixture *fixture, uint32_t id, int error)
{
	const Object *object = &fixture->objects[id];

	if (object->answers != 1 || object->error != error || object->right != !error)
		fail_msg("object %u, %c: %u answers, error %d (%d), %s", id, object->behaviour.what,
			 object->answers, object->error, error,
			 object->right ? "right" : "not right");
}

bool is_readable(const Fixture *fixture, int ms)
{
	struct pollfd polled = {.fd = table_service_fd(fixture->service), .events = POLLIN};

	return poll(&polled, 1, ms) == 1;
}
