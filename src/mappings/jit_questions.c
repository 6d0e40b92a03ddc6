/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_questions.h"
#include <sys/epoll.h>

/* So many files are asked about before the answers are waited for. */
#define ASKED_FILES_MAX 64

static JitFileInfo *file_info(JitCodes *codes, uint32_t file)
{
	while (codes->files.count <= file)
		*vec_push(&codes->files) = (JitFileInfo){};
	return &codes->files.items[file];
}

const ElfJit *jit_questions_file(JitCodes *codes, uint32_t file)
{
	return &file_info(codes, file)->jit;
}

static void watch_child(JitCodes *codes, bool was_running)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (!was_running && codes->child.sandbox.pid)
		epoll_ctl(codes->epoll_fd, EPOLL_CTL_ADD, codes->child.sandbox.socket, &event);
}

/*
 * A file that is closed because descriptors are scarce is asked about in a later look. Returns 1 if
 * the child takes no question: it has ended, which is found when its answers are read.
 */
static int ask_file(JitCodes *codes, JitFileInfo *info, const FileView *view)
{
	bool running = codes->child.sandbox.pid;
	int64_t number;

	if (view->fd < 0) {
		info->state = view->closed ? FILE_NOT_ASKED : FILE_ANSWERED;
		return 0;
	}
	number = jit_child_ask_file(&codes->child, view->fd);
	watch_child(codes, running);
	if (number < 0)
		return codes->child.sandbox.pid ? 1 : number;
	info->state = FILE_ASKED;
	info->number = number;
	return 0;
}

int jit_questions_ask_files(MappedFiles *files)
{
	JitCodes *codes = mapped_files_jit_codes(files);
	int missing = 0;

	for (size_t i = 0; i < codes->look.mapped.count && missing < ASKED_FILES_MAX; i++) {
		uint32_t id = codes->look.mapped.items[i].file;
		JitFileInfo *info = file_info(codes, id);
		int r = 0;

		if (info->state == FILE_NOT_ASKED) {
			FileView view = mapped_files_view(files, id);

			r = ask_file(codes, info, &view);
		}
		if (r)
			return r < 0 ? r : missing + 1;
		missing += info->state == FILE_ASKED;
	}
	return missing;
}

void jit_questions_on_answer(JitCodes *codes)
{
	const JitAnswer *answer = &codes->child.answer;

	if (!answer->is_file) {
		if (answer->number == codes->memory_number)
			codes->memory_number = 0;
		return;
	}
	for (size_t i = 0; i < codes->files.count; i++) {
		JitFileInfo *info = &codes->files.items[i];

		if (info->state != FILE_ASKED || info->number != answer->number)
			continue;
		info->jit = answer->jit;
		info->state = FILE_ANSWERED;
		return;
	}
}

bool jit_questions_can_tell(JitCodes *codes)
{
	for (size_t i = 0; i < codes->look.mapped.count; i++) {
		const ElfJit *jit = jit_questions_file(codes, codes->look.mapped.items[i].file);

		if (jit->descriptor || jit->registers)
			return true;
	}
	return false;
}

int jit_questions_ask_memory(JitCodes *codes)
{
	JitLook *look = &codes->look;
	bool running = codes->child.sandbox.pid;
	int64_t number =
		jit_child_ask_memory(&codes->child, &look->reader, &look->code,
				     look->process->known.items, look->process->known.count);

	watch_child(codes, running);
	if (number < 0)
		return number;
	look->number = codes->memory_number = number;
	return 0;
}

/*
 * Its answers are in the order of the questions. Memory that it was asked about for a look that has
 * been dropped comes before files.
 */
void jit_questions_end_child(JitCodes *codes)
{
	JitFileInfo *first = NULL;

	for (size_t i = 0; i < codes->files.count; i++) {
		JitFileInfo *info = &codes->files.items[i];

		if (info->state != FILE_ASKED)
			continue;
		info->state = FILE_NOT_ASKED;
		if (!first || info->number < first->number)
			first = info;
	}
	if (first && !codes->memory_number)
		first->state = FILE_ANSWERED;
	codes->memory_number = 0;
	jit_child_end(&codes->child);
}
