/* A main() for fuzz targets without libFuzzer: runs the seeds of t/fuzz/seeds/NAME.txt, each also
 * in mutated forms, or the files named on the command line. Which mutations is settled by two
 * numbers that the TAP line names, so that a failure can be had again.
 *
 *   replay_NAME                 all seeds; FUZZ_MUTATIONS=N of each (64), FUZZ_SEED=S (1)
 *   replay_NAME --only I:J      mutation J of seed I (0: the seed itself)
 *   replay_NAME --write DIR     writes the seeds as files, for libFuzzer
 *   replay_NAME FILE...         these inputs */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"

#define INPUT_MAX (1 << 20)
#define STACKED 4 /* up to so many changes in one mutation */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static struct hr_buf *seeds;
static size_t nseeds;
static unsigned at_seed, at_mutation;

static void __attribute__((noreturn)) give_up(const char *what, const char *name)
{
	printf("Bail out! %s: %s\n", name, what);
	exit(2);
}

static void
on_death(int sig)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "# died with signal %d at --only %u:%u\n", sig,
	    at_seed, at_mutation);

	(void)signal(sig, SIG_DFL);
	(void)!write(STDOUT_FILENO, text, (size_t)n);
}

/* Its own copy on the heap with nothing behind it, so that a read past the end is seen. */
static void
run(const struct hr_buf *b)
{
	HR_FREE uint8_t *copy = malloc(b->len > 0 ? b->len : 1);

	if (copy == NULL)
		give_up("no memory", "replay");
	if (b->len > 0)
		memcpy(copy, b->p, b->len);
	(void)LLVMFuzzerTestOneInput(copy, b->len);
}

static uint64_t
random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15U; /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
	return z ^ (z >> 31);
}

static size_t
random_below(uint64_t *state, size_t n)
{
	return n == 0 ? 0 : (size_t)(random_next(state) % n);
}

/* Bytes that parsers stumble over. */
static uint8_t
random_byte(uint64_t *state)
{
	static const uint8_t odd[] = {0, 1, 7, 8, 9, 10, 13, 24, 27, 32, '!', '"', '#', '$', '&',
	    '\'', '(', ')', '*', '-', '0', '9', ':', ';', '<', '?', '[', '\\', ']', '`', '{', '|',
	    '}', '~', 0x7F, 0x80, 0x9B, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xFE, 0xFF};

	if (random_below(state, 2) == 0)
		return odd[random_below(state, sizeof(odd))];
	return (uint8_t)random_next(state);
}

/* out = b with one thing changed. */
static void
mutate_once(struct hr_buf *out, const struct hr_buf *b, uint64_t *state)
{
	size_t at = random_below(state, b->len + 1), n = random_below(state, b->len - at + 1), from;
	const struct hr_buf *other;

	hr_buf_reset(out);
	hr_buf_add(out, b->p, at);
	switch (random_below(state, 6)) {
	case 0: /* another byte */
		hr_buf_addc(out, (char)random_byte(state));
		at = at < b->len ? at + 1 : at;
		break;
	case 1: /* one more byte */ hr_buf_addc(out, (char)random_byte(state)); break;
	case 2: /* some less */ at += n; break;
	case 3: /* the end is missing */ at = b->len; break;
	case 4: /* some twice */
		n = n > 256 ? 256 : n;
		hr_buf_add(out, b->p + at, n);
		break;
	default: /* a piece of another seed */
		other = &seeds[random_below(state, nseeds)];
		from = random_below(state, other->len + 1);
		n = random_below(state, other->len - from + 1);
		hr_buf_add(out, other->p + from, n);
		break;
	}
	hr_buf_add(out, b->p + at, b->len - at);
}

static void
run_mutation(uint64_t fuzz_seed, unsigned i, unsigned j)
{
	uint64_t state = fuzz_seed * 0x100000001B3U + ((uint64_t)i << 32) + j;
	HR_BUF(a, 2 * INPUT_MAX);
	HR_BUF(b, 2 * INPUT_MAX);
	size_t changes;

	at_seed = i;
	at_mutation = j;
	if (j == 0) {
		run(&seeds[i]);
		return;
	}
	hr_buf_add(&a, seeds[i].p, seeds[i].len);
	for (changes = 1 + random_below(&state, STACKED); changes > 0; changes--) {
		mutate_once(&b, &a, &state);
		hr_buf_reset(&a);
		hr_buf_add(&a, b.p, b.len);
	}
	if (a.fail == HR_OK && b.fail == HR_OK)
		run(&a);
}

/* One line of a seed file: \\, \n, \r, \t, \xNN and plain bytes. */
static void
unescape(struct hr_buf *b, const char *p, const char *end)
{
	char hex[3] = {0};

	for (; p < end; p++) {
		if (*p != '\\' || p + 1 == end) {
			hr_buf_addc(b, *p);
			continue;
		}
		switch (*++p) {
		case 'n': hr_buf_addc(b, '\n'); break;
		case 'r': hr_buf_addc(b, '\r'); break;
		case 't': hr_buf_addc(b, '\t'); break;
		case 'x':
			if (end - p < 3)
				break;
			memcpy(hex, p + 1, 2);
			hr_buf_addc(b, (char)strtol(hex, NULL, 16));
			p += 2;
			break;
		default: hr_buf_addc(b, *p); break;
		}
	}
}

static void
seed_add(const char *p, const char *end, bool raw)
{
	struct hr_buf *grown = realloc(seeds, (nseeds + 1) * sizeof(*seeds));

	if (grown == NULL)
		give_up("no memory", "seeds");
	seeds = grown;
	hr_buf_init(&seeds[nseeds], INPUT_MAX);
	if (raw)
		hr_buf_add(&seeds[nseeds], p, (size_t)(end - p));
	else
		unescape(&seeds[nseeds], p, end);
	if (seeds[nseeds].fail != HR_OK)
		give_up("a seed is too long", "seeds");
	nseeds++;
}

static void
load(const char *path, bool raw)
{
	HR_BUF(text, 16 << 20);
	struct hr_err err = {0};
	const char *p, *end, *nl;

	if (hr_path_read(path, &text, &err) != 0)
		give_up(err.msg, path);
	p = hr_buf_str(&text);
	end = p + text.len;
	if (raw)
		seed_add(p, end, true);
	for (; !raw && p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		nl = nl != NULL ? nl : end;
		if (nl > p && *p != '#')
			seed_add(p, nl, false);
	}
}

/* t/fuzz/replay_term: "term", also where libtool put a directory before it or "lt-". */
static const char *
target_name(const char *argv0)
{
	const char *name = strstr(argv0, "replay_");

	return name != NULL ? name + strlen("replay_") : argv0;
}

static void
write_seeds(const char *dir)
{
	char path[4096];
	FILE *f;
	size_t i;

	for (i = 0; i < nseeds; i++) {
		(void)snprintf(path, sizeof(path), "%s/seed-%zu", dir, i);
		f = fopen(path, "w");
		if (f == NULL || fwrite(seeds[i].p, 1, seeds[i].len, f) != seeds[i].len ||
		    fclose(f) != 0)
			give_up(strerror(errno), path);
	}
}

static unsigned
number(const char *name, unsigned fallback)
{
	const char *text = getenv(name);

	return text != NULL && text[0] != '\0' ? (unsigned)strtoul(text, NULL, 10) : fallback;
}

static void
run_all(const char *name, unsigned mutations, unsigned fuzz_seed)
{
	unsigned i, j;

	for (i = 0; i < nseeds; i++) {
		for (j = 0; j <= mutations; j++)
			run_mutation(fuzz_seed, i, j);
	}
	printf("ok 1 - %s: %zu inputs, %u mutations of each, FUZZ_SEED=%u\n1..1\n", name, nseeds,
	    mutations, fuzz_seed);
}

static void
load_default(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[4096];

	(void)snprintf(
	    path, sizeof(path), "%s/t/fuzz/seeds/%s.txt", srcdir != NULL ? srcdir : ".", name);
	load(path, false);
}

static void
free_seeds(void)
{
	size_t i;

	for (i = 0; i < nseeds; i++)
		hr_buf_done(&seeds[i]);
	free(seeds);
}

int
main(int argc, char **argv)
{
	const char *name = target_name(argv[0]);
	unsigned fuzz_seed = number("FUZZ_SEED", 1), i, j;
	int k;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)signal(SIGABRT, on_death);
	if (LLVMFuzzerInitialize != NULL)
		(void)LLVMFuzzerInitialize(&argc, &argv);
	if (argc > 1 && argv[1][0] != '-') {
		for (k = 1; k < argc; k++)
			load(argv[k], true);
		run_all(name, 0, fuzz_seed);
	} else {
		load_default(name);
		if (argc == 3 && strcmp(argv[1], "--write") == 0)
			write_seeds(argv[2]);
		else if (argc == 3 && sscanf(argv[2], "%u:%u", &i, &j) == 2 && i < nseeds)
			run_mutation(fuzz_seed, i, j);
		else if (argc == 1)
			run_all(name, number("FUZZ_MUTATIONS", 64), fuzz_seed);
		else
			give_up("see the head of replay_main.c", "usage");
	}
	free_seeds();
	return 0;
}
