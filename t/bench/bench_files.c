/* The parts of the file actions without a server: bench_files PART SECONDS. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/path.h"
#include "files/binary.h"
#include "files/diff.h"
#include "files/editor/editor.h"
#include "files/readwrite.h"
#include "lat.h"

#define BIG (1u << 20)

static char top[64], file[96], history[96];
static struct hr_buf big, other;

static void
must(bool cond, const char *what)
{
	if (cond)
		return;
	(void)fprintf(stderr, "bench_files: %s\n", what);
	(void)hr_path_remove(top, NULL);
	exit(1);
}

static void
put(const struct hr_buf *b, size_t len)
{
	FILE *f = fopen(file, "w");

	must(f != NULL && fwrite(b->p, 1, len, f) == len && fclose(f) == 0, "cannot write");
}

static void
edit(const char *command, const char *old, const char *new)
{
	const struct hr_editor editor = {{top, strlen(top)}, history, NULL};
	struct hr_edit q = {
	    .command = {command, strlen(command)}, .path = json_object_new_string(file)};
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);

	if (old != NULL)
		q.file_text = q.old_str = json_object_new_string(old);
	if (new != NULL)
		q.new_str = json_object_new_string(new);
	must(hr_editor_run(&editor, &q, &text, &diff) == HR_EDIT_DONE, hr_buf_str(&text));
	json_object_put(q.path);
	json_object_put(q.old_str);
	json_object_put(q.new_str);
}

static void
verdict(void)
{
	must(!hr_binary_file(file), "binary");
}

static void
read_file(void)
{
	const struct hr_read q = {.path = {file, strlen(file)}, .end = -1};
	HR_BUF(text, BIG);

	must(hr_rw_read(&q, &text) == HR_RW_DONE, "read");
}

static void
view(void)
{
	edit("view", NULL, NULL);
}

static void
create(void)
{
	edit("create", "some text\n", NULL);
}

static void
str_replace(void)
{
	edit("str_replace", "<needle>", "<needle>.");
}

static void
diff(void)
{
	HR_BUF(d, BIG * 4);

	must(hr_diff(&d, (struct hr_span){big.p, big.len}, (struct hr_span){other.p, other.len},
		 (struct hr_span){"/p", 2}, NULL) == 0,
	    "diff");
}

static const struct {
	const char *name;
	void (*run)(void);
	size_t len; /* of the file; 0: it is removed before each turn */
} parts[] = {
    {"verdict", verdict, 1024},
    {"read", read_file, 1024},
    {"view", view, 1024},
    {"create", create, 0},
    {"str_replace", str_replace, BIG},
    {"diff", diff, BIG},
};

static void
begin(void)
{
	int i;

	(void)snprintf(top, sizeof(top), "/tmp/bench_files.XXXXXX");
	if (mkdtemp(top) == NULL)
		exit(1);
	(void)snprintf(file, sizeof(file), "%s/file.txt", top);
	(void)snprintf(history, sizeof(history), "%s/undo", top);
	hr_buf_init(&big, BIG * 2);
	hr_buf_init(&other, BIG * 2);
	hr_buf_adds(&big, "<needle>\n");
	for (i = 0; big.len < BIG; i++) {
		hr_buf_addf(&big, "line %d of a big file\n", i);
		hr_buf_addf(&other, "line %d of a big file\n", i % 1000 == 0 ? -i : i);
	}
}

int
main(int argc, char **argv)
{
	struct bench_lat lat;
	uint64_t from, now, end;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.5;
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(parts[i].name, argv[1]) == 0)
			break;
	if (argc < 2 || i == sizeof(parts) / sizeof(parts[0])) {
		(void)fprintf(stderr, "usage: bench_files PART [SECONDS]\n");
		return 2;
	}
	begin();
	bench_lat_init(&lat);
	if (parts[i].len > 0)
		put(&big, parts[i].len < big.len ? parts[i].len : big.len);
	end = bench_now() + (uint64_t)(seconds * 1e9);
	do {
		if (parts[i].len == 0)
			(void)unlink(file);
		from = bench_now();
		parts[i].run();
		now = bench_now();
		bench_lat_add(&lat, now - from);
	} while (now < end);
	bench_lat_print(&lat, seconds, "");
	bench_lat_done(&lat);
	hr_buf_done(&big);
	hr_buf_done(&other);
	(void)hr_path_remove(top, NULL);
	return 0;
}
