/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source_texts.h"
#include <string.h>

void source_texts_add(SourceTexts *texts, const struct rec_source *source)
{
	SourceText text = {.size = source->text_size};

	if (strings_intern(&texts->paths, source->data) < texts->list.count)
		return;
	text.text = xmalloc(text.size + 1);
	memcpy(text.text, source->data + strlen(source->data) + 1, text.size);
	text.text[text.size] = '\0';
	*vec_push(&texts->list) = text;
}

const SourceText *source_texts_find(const SourceTexts *texts, const char *path)
{
	uint32_t number = strings_find(&texts->paths, path);

	return number == MAP_NONE ? NULL : &texts->list.items[number];
}

void source_texts_free(SourceTexts *texts)
{
	for (size_t i = 0; i < texts->list.count; i++)
		free(texts->list.items[i].text);
	vec_free(&texts->list);
	strings_free(&texts->paths);
}
