/* Subcommands by their names, and by words that other programs have for what they do. */
#include "config.h"

#include <string.h>

#include "base/nearest.h"
#include "cli/commands.h"

/* Words of other programs, and what is meant here. */
static const struct {
	const char *word, *here;
} guesses[] = {
    {"cat", "\"handrail read PATH\" prints a file"},
    {"cp", "\"handrail put FILE [PATH]\" copies into it, \"handrail get PATH [FILE]\" out of it"},
    {"create", "\"handrail up\" makes and starts one"},
    {"delete", "\"handrail down\" ends one and removes what belongs to it"},
    {"exec",
	"\"handrail run COMMAND\" runs one in the shell, \"handrail sh COMMAND\" on a terminal"},
    {"images", "\"handrail image ls\" lists them"},
    {"info", "\"handrail ps\" lists the sandboxes, \"handrail top\" says what one uses, \"handrail "
	     "url\" "
	     "where it is"},
    {"bash", "\"handrail sh\" is a shell in it on this terminal, \"handrail run LINE\" a line for "
	     "its shell"},
    {"cd", "\"handrail run 'cd DIR'\" goes there in the shell that all \"handrail run\" share"},
    {"copy", "\"handrail put FILE [PATH]\" copies into it, \"handrail get PATH [FILE]\" out of it"},
    {"download", "\"handrail get PATH [FILE]\" copies out of it"},
    {"inspect", "\"handrail ps --json\" and \"handrail config\" say what is known"},
    {"kill", "\"handrail down\" ends one and removes what belongs to it"},
    {"launch", "\"handrail up\" makes and starts one"},
    {"list", "\"handrail ps\" lists the sandboxes, \"handrail ls\" a directory of one"},
    {"python", "\"handrail py CODE\" runs it in the notebook"},
    {"port", "\"handrail url\" says where it is, and its ports"},
    {"ports", "\"handrail url\" says where it is, and its ports"},
    {"restart", "\"handrail down\" ends one, \"handrail up\" makes and starts one"},
    {"rm", "\"handrail down [NAME]\" ends one and removes what belongs to it"},
    {"shell", "\"handrail sh\" is a terminal in it"},
    {"ssh", "\"handrail sh\" is a terminal in it"},
    {"start", "\"handrail up\" makes and starts one, \"handrail resume\" lets a paused one go on"},
    {"stats", "\"handrail top\" says what one uses"},
    {"status", "\"handrail ps\" lists the sandboxes and how they are"},
    {"stop", "\"handrail pause\" stops one that can go on, \"handrail down\" ends it"},
    {"upload", "\"handrail put FILE [PATH]\" copies into it"},
    {"unpause", "\"handrail resume\" lets a paused one go on"},
};

static const char *
guess(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(guesses) / sizeof(*guesses); i++)
		if (strcmp(guesses[i].word, name) == 0)
			return guesses[i].here;
	return NULL;
}

const struct cli_command *
cli_find_command(const char *name)
{
	const char *names[64];
	const char *near;
	size_t n = 0;
	size_t i;

	for (i = 0; i < cli_commands_n && n < 64; i++) {
		if (strcmp(cli_commands[i]->name, name) == 0)
			return cli_commands[i];
		names[n++] = cli_commands[i]->name;
	}
	if (guess(name) != NULL) {
		cli_say("there is no command \"%s\"; %s", name, guess(name));
		return NULL;
	}
	near = hr_nearest(name, names, n);
	cli_say("there is no command \"%s\"%s%s%s", name, near != NULL ? "; did you mean \"" : "",
	    near != NULL ? near : "", near != NULL ? "\"?" : "; see \"handrail --help\"");
	return NULL;
}
