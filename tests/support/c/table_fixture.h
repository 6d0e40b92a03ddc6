/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_fixture.h - a service for unwind tables, objects that say how the child behaves that reads
 * them, and what came of each.
 */
#ifndef WALLPROF_TEST_TABLE_FIXTURE_H
#define WALLPROF_TEST_TABLE_FIXTURE_H

#include "fake_table_builder.h"
#include "table_service.h"
#include "test_tools.h"

#define TIMEOUT_NS  (150 * NSEC_PER_MSEC)
#define LONG_NS	    (60 * NSEC_PER_SEC)
#define OBJECTS_MAX 400

typedef struct Object {
	struct behaviour behaviour;
	struct behaviour by_build_id, by_link; /* its debug files; rows 0 = there is none */
	char wanted;			       /* whose table is right: 0 = its own, 'b' or 'l' */
	unsigned answers;
	int error, debug;
	bool right; /* it had a table, and the one that it should have */
} Object;

typedef struct Fixture {
	TableServiceOptions options;
	TableService *service;
	Object objects[OBJECTS_MAX + 1]; /* by id */
	uint32_t order[OBJECTS_MAX + 1]; /* of the answers */
	size_t answered;
	uint32_t next;				/* to be wanted by the next answer; 0 = none */
	void (*look)(const UnwindTable *table); /* while it is there */
	size_t fds, maps;			/* before the service */
} Fixture;

/* Nothing of the service may be left when it is stopped. */
void start_service(Fixture *fixture);
void stop_service(Fixture *fixture);
int table_fixture_set_up(void **state);
int table_fixture_tear_down(void **state);

/* Returns a descriptor. */
int make_object(const struct behaviour *behaviour);
void want_fd(Fixture *fixture, uint32_t id, int fd);

/* Requests the table of an object that behaves like this. */
void want_object(Fixture *fixture, uint32_t id, char what);
/* Whether it is the table of that object. */
bool is_right(const Object *object, const UnwindTable *table);
/* A TableReady. */
void on_ready(void *user, uint32_t id, const UnwindTable *table, int error, int debug);
void await_all(Fixture *fixture);
/* Fails the test if the object has not exactly one answer, with this error, or 0 and its table. */
void check_answer(const Fixture *fixture, uint32_t id, int error);
bool is_readable(const Fixture *fixture, int ms);

#define WITH_FIXTURE(test)                                                                         \
	cmocka_unit_test_setup_teardown(test, table_fixture_set_up, table_fixture_tear_down)

#endif
