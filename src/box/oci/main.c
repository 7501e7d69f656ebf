/* handrail-layer: writes snapshots of boxes as images, and makes snapshots of images. "handrail
 * snapshot export" and "import" run it. */
#include "config.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"
#include "box/ids.h"
#include "box/oci/oci.h"

struct order {
	const char *path, *tag; /* tag NULL: export */
	char *const *layers;
	size_t n_layers;
	bool plain;
};

static int
carry_out(const void *arg, struct hr_err *err)
{
	const struct order *o = arg;

	return o->tag == NULL
		   ? oci_export(o->path, o->layers, o->n_layers, o->plain, STDOUT_FILENO, err)
		   : oci_import(o->path, o->tag, o->plain, STDIN_FILENO, err);
}

/* Moves the values of "--layer DIR" to the beginning of argv. Returns their number, or -1. */
static int
take_layers(char **argv)
{
	int n = 0;

	for (; argv[2 * n] != NULL; n++) {
		if (strcmp(argv[2 * n], "--layer") != 0 || argv[2 * n + 1] == NULL)
			return -1;
		argv[n] = argv[2 * n + 1];
	}
	return n;
}

int
main(int argc, char **argv)
{
	const bool imports = argc == 4 && strcmp(argv[1], "--import") == 0;
	const bool exports = argc >= 3 && strcmp(argv[1], "--export") == 0;
	const int layers = exports ? take_layers(argv + 3) : 0;
	struct order o = {.plain = !hr_account_is_root()};
	struct hr_err e = {0};

	if ((!imports && !exports) || layers < 0) {
		(void)fputs("usage: handrail-layer --export SNAPSHOT [--layer DIR]... >FILE\n"
			    "       handrail-layer --import DIR TAG <FILE\n",
		    stderr);
		return 2;
	}
	o.path = argv[2];
	o.tag = imports ? argv[3] : NULL;
	o.layers = argv + 3;
	o.n_layers = (size_t)layers;
	(void)signal(SIGPIPE, SIG_IGN);
	/* names are bytes; libarchive reads those of an archive as UTF-8 in such a locale */
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL || hr_fd_open_stdio(&e) < 0 ||
	    box_ids_run(carry_out, &o, &e) < 0) {
		(void)fprintf(stderr, "handrail-layer: %s\n",
		    e.msg[0] != '\0' ? e.msg : "there is no locale C.UTF-8");
		return 125;
	}
	return 0;
}
