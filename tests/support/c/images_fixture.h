/* SPDX-License-Identifier: GPL-2.0-or-later */
/* images_fixture.h - gives images the events, record by record. */
#ifndef WALLPROF_TEST_IMAGES_FIXTURE_H
#define WALLPROF_TEST_IMAGES_FIXTURE_H

#include "images.h"
#include "make_record.h"

#define NS_TGID 10
#define TGID	1010 /* the same process, as the kernel numbers it */
#define BORN	5000

/*
 * Returns images with an empty table of processes, which images_give() adds tasks to, as the
 * recorder does. There is one table, so the images before are not used any more.
 */
Images empty_images(void);

/* Gives it the record, which is freed. */
void images_give(Images *images, struct record *record, uint64_t now);
/* Processes are named by their id in the recorder's PID namespace. */
void give_task(Images *images, uint64_t ns, uint32_t number, uint32_t exec_id, uint64_t born);
void give_exit(Images *images, uint64_t now, uint32_t number, int flags);
void give_mapping(Images *images, uint64_t ns, uint32_t number, uint32_t file, uint64_t start,
		  uint64_t end);
void give_fork(Images *images, uint64_t ns, uint32_t number, uint32_t parent);
void give_exec(Images *images, uint64_t ns, uint32_t number);

/* Returns the file at that address; 0: none. */
uint32_t file_at(const Images *images, uint32_t number, uint64_t born, uint32_t exec_id,
		 uint64_t avma);
/* Fails the test if there is more than one. */
const Image *only_image(Images *images);
void assert_mapping(const Image *image, size_t number, uint32_t file, uint64_t start,
		    uint64_t last);

#endif
