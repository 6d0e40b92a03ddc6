/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "file_names.h"

enum file_use { USED_BY_KERNEL = 1, USED_BY_TARGET = 2 };

bool file_names_are_withheld(const RecordOptions *options)
{
	return !options->whole_system && !options->all_files;
}

bool file_names_add(FileNames *names, const struct rec_inode *record)
{
	uint64_t key = hash_mix(hash_mix(record->inode, record->generation), record->device);
	uint32_t known = map_get(&names->files, key);

	if (known == USED_BY_TARGET)
		return true;
	if (record->h.flags & INODE_KERNEL) {
		if (known == MAP_NONE)
			names->withheld++;
		map_set(&names->files, key, USED_BY_KERNEL);
		return false;
	}
	if (known == USED_BY_KERNEL)
		names->withheld--;
	map_set(&names->files, key, USED_BY_TARGET);
	return true;
}

uint64_t file_names_withheld(const FileNames *names)
{
	return names->withheld;
}

void file_names_free(FileNames *names)
{
	map_free(&names->files);
}
