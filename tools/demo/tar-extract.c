/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tar-extract - unpacks a zstd-compressed tar archive; a program to try wallprof on.
 *
 *     tar-extract [--threads N] [--io-uring] [--mmap] ARCHIVE DIR
 *
 * The main thread reads, decompresses, and creates every name; what is written
 * into files goes as chunks to the writer: the main thread itself, N threads
 * behind a bounded queue, an io_uring, or both. ustar headers with the long names of
 * GNU and pax are understood; of types, regular files, directories, symbolic
 * and hard links. Every name is opened beneath DIR by the kernel's own check
 * (openat2), so neither ".." nor a symbolic link in the archive leads out.
 */
#include "tar-writer.h"
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>

#define BLOCK	      512
#define MAX_EXTENSION (64 * 1024) /* of a long name or pax header */
#define MAX_PATH_LEN  4096

typedef struct Input {
	const char *name;
	int fd; /* -1: mapped */
	ZSTD_DCtx *context;
	ZSTD_inBuffer in;
	ZSTD_outBuffer out;
	size_t taken; /* of out */
	char *in_buffer;
	bool frame_open;
} Input;

/* A header with all that its extensions said. */
typedef struct Entry {
	char type;
	mode_t mode;
	time_t mtime;
	uint64_t size;
	char *path, *link;
} Entry;

/* Directories get mode and time last, or files could not be put into them. */
typedef struct Directory {
	struct Directory *next;
	mode_t mode;
	time_t mtime;
	char path[];
} Directory;

static unsigned int thread_count;
static bool use_uring, use_mmap;
static bool incomplete; /* an entry that cannot be unpacked */
static int root_fd;
static mode_t creation_mask;
static Directory *directories;

/* ---- reading ------------------------------------------------------------- */

static void input_open(Input *input, const char *name)
{
	struct stat st;

	*input = (Input){.name = name, .fd = open(name, O_RDONLY | O_CLOEXEC)};
	if (input->fd < 0 || fstat(input->fd, &st) < 0)
		error(1, errno, "%s", name);
	input->context = ZSTD_createDCtx();
	if (!input->context)
		error(1, errno, "out of memory");
	input->out.size = ZSTD_DStreamOutSize();
	input->out.dst = allocate(input->out.size);
	if (use_mmap && st.st_size > 0) {
		input->in.src =
			mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, input->fd, 0);
		if (input->in.src == MAP_FAILED)
			error(1, errno, "%s", name);
		input->in.size = (size_t)st.st_size;
		close(input->fd);
		input->fd = -1;
	} else {
		input->in_buffer = allocate(ZSTD_DStreamInSize());
		input->in.src = input->in_buffer;
	}
}

static bool input_fill_compressed(Input *input)
{
	ssize_t n;

	if (input->fd < 0)
		return false;
	do
		n = read(input->fd, input->in_buffer, ZSTD_DStreamInSize());
	while (n < 0 && errno == EINTR);
	if (n < 0)
		error(1, errno, "%s", input->name);
	input->in.size = (size_t)n;
	input->in.pos = 0;
	return n > 0;
}

/* Decompresses some more. Returns false at the end of the archive. */
static bool input_fill(Input *input)
{
	input->out.pos = 0;
	input->taken = 0;
	while (input->out.pos == 0) {
		size_t r;

		if (input->in.pos == input->in.size && !input_fill_compressed(input)) {
			if (input->frame_open)
				error(1, 0, "%s: cut off", input->name);
			return false;
		}
		r = ZSTD_decompressStream(input->context, &input->out, &input->in);
		if (ZSTD_isError(r))
			error(1, 0, "%s: %s", input->name, ZSTD_getErrorName(r));
		input->frame_open = r != 0;
	}
	return true;
}

/* Reads length bytes (data may be NULL: skips them); returns how many there were. */
static uint64_t input_read(Input *input, char *data, uint64_t length)
{
	uint64_t done = 0;

	while (done < length) {
		size_t n = input->out.pos - input->taken;

		if (n == 0) {
			if (!input_fill(input))
				break;
			continue;
		}
		if (n > length - done)
			n = length - done;
		if (data)
			memcpy(data + done, (char *)input->out.dst + input->taken, n);
		input->taken += n;
		done += n;
	}
	return done;
}

static void input_read_all(Input *input, char *data, uint64_t length)
{
	if (input_read(input, data, length) != length)
		error(1, 0, "%s: ends in the middle of an entry", input->name);
}

static void input_close(Input *input)
{
	if (input->fd < 0)
		munmap((void *)input->in.src, input->in.size);
	else
		close(input->fd);
	ZSTD_freeDCtx(input->context);
	free(input->in_buffer);
	free(input->out.dst);
}

static void input_skip_padding(Input *input, uint64_t size)
{
	input_read_all(input, NULL, (BLOCK - size % BLOCK) % BLOCK);
}

/* ---- headers ------------------------------------------------------------- */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
		magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "tar header");

/* Octal text, or, with the top bit set, big-endian binary (GNU). */
static uint64_t parse_number(const char *text, size_t length)
{
	uint64_t value = 0;

	if ((unsigned char)text[0] & 0x80) {
		for (size_t i = length - 8; i < length; i++)
			value = value << 8 | (unsigned char)text[i];
		return value;
	}
	for (size_t i = 0; i < length && (text[i] == ' ' || (text[i] >= '0' && text[i] <= '7'));
	     i++)
		if (text[i] != ' ')
			value = value << 3 | (uint64_t)(text[i] - '0');
	return value;
}

static bool checksum_fits(const struct header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	size_t from = offsetof(struct header, checksum);
	uint64_t sum = 0;

	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= from && i < from + sizeof(header->checksum) ? ' ' : bytes[i];
	return sum == parse_number(header->checksum, sizeof(header->checksum));
}

static char *read_extension(Input *input, uint64_t size)
{
	char *text;

	if (size > MAX_EXTENSION)
		error(1, 0, "%s: name of %lu bytes", input->name, size);
	text = allocate(size + 1);
	input_read_all(input, text, size);
	text[size] = '\0';
	input_skip_padding(input, size);
	return text;
}

static char *checked(char *text)
{
	if (!text)
		error(1, errno, "out of memory");
	return text;
}

static void replace(char **text, char *with)
{
	free(*text);
	*text = with;
}

/* pax: lines of "LENGTH KEY=VALUE\n", LENGTH counting the whole line. */
static void take_pax(Input *input, uint64_t size, Entry *entry, bool *ret_sized)
{
	char *text = read_extension(input, size);
	char *line = text, *end = text + size;

	while (line < end) {
		char *key, *value;
		uint64_t length = strtoull(line, &key, 10);

		if (length == 0 || length > (uint64_t)(end - line) || *key != ' ' ||
		    line[length - 1] != '\n')
			error(1, 0, "%s: malformed pax header", input->name);
		line[length - 1] = '\0';
		key++;
		value = strchr(key, '=');
		if (!value)
			error(1, 0, "%s: malformed pax header", input->name);
		*value++ = '\0';
		if (strcmp(key, "path") == 0)
			replace(&entry->path, checked(strdup(value)));
		else if (strcmp(key, "linkpath") == 0)
			replace(&entry->link, checked(strdup(value)));
		else if (strcmp(key, "size") == 0) {
			entry->size = strtoull(value, NULL, 10);
			*ret_sized = true;
		}
		line += length;
	}
	free(text);
}

static char *header_path(const struct header *header)
{
	char *path = allocate(sizeof(header->prefix) + sizeof(header->name) + 2);
	bool ustar = memcmp(header->magic, "ustar\0", 6) == 0;

	if (ustar && header->prefix[0])
		sprintf(path, "%.155s/%.100s", header->prefix, header->name);
	else
		sprintf(path, "%.100s", header->name);
	return path;
}

/* Reads a header and its extensions. Returns false at the end of the archive. */
static bool read_entry(Input *input, Entry *ret_entry)
{
	Entry entry = {};
	struct header header;
	bool sized = false;

	for (;;) {
		uint64_t size, n = input_read(input, (char *)&header, BLOCK);

		if (n == 0 || (n == BLOCK && header.name[0] == '\0'))
			return false;
		if (n != BLOCK || !checksum_fits(&header))
			error(1, 0, "%s: not a tar archive, or damaged", input->name);
		size = parse_number(header.size, sizeof(header.size));
		if (header.type == 'L') {
			replace(&entry.path, read_extension(input, size));
		} else if (header.type == 'K') {
			replace(&entry.link, read_extension(input, size));
		} else if (header.type == 'x') {
			take_pax(input, size, &entry, &sized);
		} else if (header.type == 'g') {
			free(read_extension(input, size));
		} else {
			if (!sized)
				entry.size = size;
			break;
		}
	}
	entry.type = header.type;
	entry.mode = (mode_t)parse_number(header.mode, sizeof(header.mode)) & 0777;
	entry.mode &= ~creation_mask;
	entry.mtime = (time_t)parse_number(header.mtime, sizeof(header.mtime));
	if (!entry.path)
		entry.path = header_path(&header);
	if (!entry.link)
		entry.link = checked(strndup(header.link, sizeof(header.link)));
	*ret_entry = entry;
	return true;
}

/* ---- names --------------------------------------------------------------- */

static int open_beneath(int fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
			       .mode = mode,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, fd, path, &how, sizeof(how));
}

/*
 * Opens the folder that path lies in, making those that are missing; *ret_name is
 * the last component ("." for DIR itself). path is cut into pieces.
 */
static int open_parent(char *path, const char **ret_name)
{
	int fd = open_beneath(root_fd, ".", O_PATH | O_DIRECTORY, 0);
	char *piece = path, *slash;

	if (path[0] == '/')
		error(1, 0, "absolute name in the archive: %s", path);
	for (size_t n = strlen(path); n > 0 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	while (fd >= 0 && (slash = strchr(piece, '/'))) {
		int next = -1;

		*slash = '\0';
		if (strcmp(piece, "..") == 0)
			error(1, 0, "name with .. in the archive");
		if (piece[0] == '\0' || strcmp(piece, ".") == 0) {
			piece = slash + 1;
			continue;
		}
		if (mkdirat(fd, piece, 0777) == 0 || errno == EEXIST)
			next = open_beneath(fd, piece, O_PATH | O_DIRECTORY, 0);
		close(fd);
		fd = next;
		piece = slash + 1;
	}
	if (fd < 0)
		error(1, errno, "%s", piece);
	if (strcmp(piece, "..") == 0)
		error(1, 0, "name with .. in the archive");
	*ret_name = piece[0] ? piece : ".";
	return fd;
}

static void extract_file(Input *input, const Entry *entry, int parent, const char *name)
{
	File *file;
	int fd;

	if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
		error(1, errno, "%s", name);
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		error(1, errno, "%s", name);
	file = file_new(fd, name, entry->mode, entry->mtime);
	for (uint64_t done = 0; done < entry->size;) {
		Chunk *chunk = chunk_new(file, done);

		if (chunk->length > entry->size - done)
			chunk->length = entry->size - done;
		input_read_all(input, chunk->data, chunk->length);
		done += chunk->length;
		writer_put(chunk);
	}
	file_release(file);
	input_skip_padding(input, entry->size);
}

static void extract_directory(const Entry *entry, int parent, const char *name, const char *path)
{
	Directory *directory = allocate(sizeof(*directory) + strlen(path) + 1);

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		error(1, errno, "%s", path);
	directory->next = directories;
	directory->mode = entry->mode;
	directory->mtime = entry->mtime;
	strcpy(directory->path, path);
	directories = directory;
}

static void extract_hard_link(const Entry *entry, int parent, const char *name)
{
	const char *target_name;
	int target = open_parent(entry->link, &target_name);

	if ((unlinkat(parent, name, 0) < 0 && errno != ENOENT) ||
	    linkat(target, target_name, parent, name, 0) < 0)
		error(1, errno, "%s", name);
	close(target);
}

static void extract_symlink(const Entry *entry, int parent, const char *name)
{
	struct timespec times[2] = {{.tv_sec = entry->mtime}, {.tv_sec = entry->mtime}};

	if ((unlinkat(parent, name, 0) < 0 && errno != ENOENT) ||
	    symlinkat(entry->link, parent, name) < 0 ||
	    utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		error(1, errno, "%s", name);
}

static void extract(Input *input, Entry *entry)
{
	char *path = checked(strdup(entry->path));
	const char *name;
	int parent = open_parent(entry->path, &name);

	switch (entry->type) {
	case '0':
	case '7':
	case '\0':
		extract_file(input, entry, parent, name);
		break;
	case '1':
		extract_hard_link(entry, parent, name);
		break;
	case '2':
		extract_symlink(entry, parent, name);
		break;
	case '5':
		extract_directory(entry, parent, name, path);
		break;
	default:
		/* A device or a pipe: worth a word, not the rest of the archive. */
		error(0, 0, "%s: entry of type '%c' skipped", path, entry->type);
		incomplete = true;
		input_read_all(input, NULL, entry->size);
		input_skip_padding(input, entry->size);
	}
	close(parent);
	free(path);
	free(entry->path);
	free(entry->link);
}

static void finish_directories(void)
{
	while (directories) {
		Directory *directory = directories;
		struct timespec times[2] = {{.tv_sec = directory->mtime},
					    {.tv_sec = directory->mtime}};
		int fd = open_beneath(root_fd, directory->path, O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0 || fchmod(fd, directory->mode) < 0 || futimens(fd, times) < 0)
			error(1, errno, "%s", directory->path);
		close(fd);
		directories = directory->next;
		free(directory);
	}
}

static void usage(int status)
{
	fputs("usage: tar-extract [--threads N] [--io-uring] [--mmap] ARCHIVE DIR\n",
	      status ? stderr : stdout);
	exit(status);
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"threads", required_argument, NULL, 't'},
						{"io-uring", no_argument, NULL, 'u'},
						{"mmap", no_argument, NULL, 'm'},
						{"help", no_argument, NULL, 'h'},
						{}};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 't':
			thread_count = (unsigned int)strtoul(optarg, &end, 10);
			if (*end || thread_count < 1 || thread_count > 1024)
				error(2, 0, "--threads is a number from 1 to 1024");
			break;
		case 'u':
			use_uring = true;
			break;
		case 'm':
			use_mmap = true;
			break;
		default:
			usage(c == 'h' ? 0 : 2);
		}
	}
	if (argc - optind != 2)
		usage(2);
}

int main(int argc, char **argv)
{
	Input input;
	Entry entry;

	parse_options(argc, argv);
	creation_mask = umask(0);
	umask(creation_mask);
	input_open(&input, argv[optind]);
	if (mkdir(argv[optind + 1], 0777) < 0 && errno != EEXIST)
		error(1, errno, "%s", argv[optind + 1]);
	root_fd = open(argv[optind + 1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		error(1, errno, "%s", argv[optind + 1]);
	writer_start(thread_count, use_uring);
	while (read_entry(&input, &entry))
		extract(&input, &entry);
	input_close(&input);
	writer_finish();
	finish_directories();
	return incomplete ? 1 : 0;
}
