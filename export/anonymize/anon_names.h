/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * anon_names.h - which replacement a name has: "file3" for a file, "dir1" for a folder.
 *
 * Names are learned first, from all records, and replaced afterwards. So it is known from the first
 * replacement on whether a name is that of a file, and whether it is one of the system's, which is
 * kept. Numbers are given in order of appearance.
 */
#ifndef WALLPROF_ANON_NAMES_H
#define WALLPROF_ANON_NAMES_H

#include "util.h"

/* What a name is of. One that is of several things is called after the first of them here. */
enum anon_role {
	ANON_FILE,
	ANON_FOLDER,
	ANON_THREAD,
	ANON_SOCKET,
	ANON_HOST,
	ANON_ARGUMENT,
	ANON_ROLES
};

typedef struct AnonName {
	uint32_t number; /* from 1 on; 0 while names are learned */
	uint8_t role;	 /* enum anon_role */
	bool is_used;	 /* something was replaced by it */
} AnonName;

typedef struct AnonNames {
	bool is_learning;
	Strings words; /* names that are replaced, without their extensions */
	VEC(AnonName) of_words;
	Strings cuts; /* the beginnings of longer names of files, as the kernel cuts names */
	VEC(uint32_t) words_of_cuts;
	Strings system;		       /* names that are kept wherever they are */
	Strings people;		       /* hosts, and users by their home directories */
	uint32_t numbered[ANON_ROLES]; /* the highest number */
	uint32_t replaced[ANON_ROLES]; /* how many are used */
} AnonNames;

void anon_names_free(AnonNames *names);

/* From now on names are replaced. */
void anon_names_learned(AnonNames *names);

/* Returns the number of a word that is replaced; it is 0 while names are learned. */
uint32_t anon_names_number(AnonNames *names, const char *word, enum anon_role role);

/* Returns "file3" for a word, or "" while names are learned. The caller frees it. */
char *anon_names_word(AnonNames *names, const char *word, enum anon_role role);

/*
 * Returns what stands for one name, such as a part of a path: the name itself if it is the system's
 * or well known, else a word with the extension that the name has. The caller frees it.
 */
char *anon_names_part(AnonNames *names, const char *name, enum anon_role role);

/* Learns that a name is the system's. It has no effect when names are replaced already. */
void anon_names_keep(AnonNames *names, const char *name);

/* Learns that a name is that of a user or a host, which texts may contain. */
void anon_names_person(AnonNames *names, const char *name);

/* Returns whether a name is one that was learned by anon_names_person(). */
bool anon_names_is_person(const AnonNames *names, const char *name);

/*
 * Returns what stands for the name of a thread, of which the kernel keeps 15 bytes. The caller
 * frees it.
 */
char *anon_names_comm(AnonNames *names, const char *comm);

/*
 * Does the same for the name of a kernel thread. It is kept unless a user has chosen a part of it:
 * NFS names threads by the server's address, cluster file systems by lockspaces and resources.
 */
char *anon_names_kernel_comm(AnonNames *names, const char *comm);

/* Returns whether the name has the form of a replacement: "file3", "dir1.d". It is never kept. */
bool anon_names_is_replacement(const char *name);

/*
 * Returns whether the name is one of a list that the rules of the analysis and readers know:
 * "libc.so.6", "python3.11", "nvme0n1p1". No other name has their form.
 */
bool anon_names_is_well_known(const char *name);

#endif
