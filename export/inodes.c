/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inodes.h"
#include <string.h>

#define DEVICE_MAJOR(device) ((device) >> 20)
#define DEVICE_MINOR(device) ((device)&0xfffff)

void inodes_free(Inodes *inodes)
{
	for (size_t i = 0; i < inodes->list.count; i++)
		free(inodes->list.items[i].path);
	vec_free(&inodes->list);
	map_free(&inodes->index);
}

uint32_t inodes_reference(Inodes *inodes, uint32_t device, uint64_t number, uint32_t generation)
{
	uint64_t key = hash_mix(hash_mix(device, number), generation);
	uint32_t place = map_get(&inodes->index, key);

	if (number == 0)
		return INODE_NONE;
	if (place != MAP_NONE && inodes->list.items[place].device == device &&
	    inodes->list.items[place].number == number &&
	    inodes->list.items[place].generation == generation)
		return place;
	place = inodes->list.count;
	*vec_push(&inodes->list) = (Inode){
		.device = device,
		.generation = generation,
		.number = number,
		.path = xasprintf("inode %llu of device %u:%u", (unsigned long long)number,
				  DEVICE_MAJOR(device), DEVICE_MINOR(device)),
	};
	map_set(&inodes->index, key, place);
	return place;
}

/* Names lie leaf first, each with its NUL. */
static char *make_path(const struct rec_inode *record)
{
	const char *begin = record->text, *end = begin + record->size;
	char *path = xcalloc(1, record->size + sizeof("/… (deleted)")), *to = path;

	if (!(record->h.flags & (INODE_WHOLE | INODE_MOUNT)))
		to = stpcpy(to, "…"); /* it was too long */
	while (end > begin) {
		const char *name = --end; /* at its NUL */

		while (name > begin && name[-1])
			name--;
		*to++ = '/';
		to = mempcpy(to, name, end - name);
		end = name;
	}
	if (record->h.flags & INODE_DELETED)
		strcpy(to, " (deleted)");
	return path;
}

static int how_whole(uint8_t flags)
{
	return flags & INODE_WHOLE ? 2 : flags & INODE_MOUNT ? 1 : 0;
}

void inodes_add(Inodes *inodes, const struct rec_inode *record)
{
	uint32_t place =
		inodes_reference(inodes, record->device, record->inode, record->generation);
	Inode *inode;

	if (place == INODE_NONE || record->size == 0)
		return;
	inode = &inodes->list.items[place];
	if (how_whole(inode->flags) > how_whole(record->h.flags))
		return;
	free(inode->path);
	inode->path = make_path(record);
	inode->flags = record->h.flags;
}

void inode_mounted(Inode *inode, const char *path)
{
	char *whole = xasprintf("%s%s", strcmp(path, "/") ? path : "", inode->path);

	free(inode->path);
	inode->path = whole;
	inode->flags ^= INODE_MOUNT | INODE_WHOLE;
}

void inode_not_mounted(Inode *inode, const char *device)
{
	char *path = xasprintf("%s:%s", device, inode->path);

	free(inode->path);
	inode->path = path;
	inode->flags ^= INODE_MOUNT;
}
