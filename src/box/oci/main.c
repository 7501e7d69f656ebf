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
	bool plain;
};

static int
carry_out(const void *arg, struct hr_err *err)
{
	const struct order *o = arg;

	return o->tag == NULL ? oci_export(o->path, STDOUT_FILENO, err)
			      : oci_import(o->path, o->tag, o->plain, STDIN_FILENO, err);
}

int
main(int argc, char **argv)
{
	const bool imports = argc == 4 && strcmp(argv[1], "--import") == 0;
	struct order o = {.plain = !hr_account_is_root()};
	struct hr_err e = {0};

	if (!imports && !(argc == 3 && strcmp(argv[1], "--export") == 0)) {
		(void)fputs("usage: handrail-layer --export SNAPSHOT >FILE\n"
			    "       handrail-layer --import DIR TAG <FILE\n",
		    stderr);
		return 2;
	}
	o.path = argv[2];
	o.tag = imports ? argv[3] : NULL;
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
