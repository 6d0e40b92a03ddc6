/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "script_code.h"
#include <string.h>

void script_code_add(ScriptCodes *codes, const struct rec_script_code *record)
{
	struct rec_script_code *copy;

	if (map_get(&codes->index, record->id) != MAP_NONE)
		return;
	copy = xmalloc(record->h.len);
	memcpy(copy, record, record->h.len);
	map_set(&codes->index, record->id, codes->list.count);
	*vec_push(&codes->list) = copy;
}

uint32_t script_code_find(const ScriptCodes *codes, uint64_t id)
{
	return map_get(&codes->index, id);
}

void script_code_free(ScriptCodes *codes)
{
	for (size_t i = 0; i < codes->list.count; i++)
		free(codes->list.items[i]);
	vec_free(&codes->list);
	map_free(&codes->index);
}
