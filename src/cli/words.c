/* Subcommands by their names, and by words that other programs have for what they do. */
#include "config.h"

#include <string.h>

#include "base/text/nearest.h"
#include "cli/commands.h"
#include "host/records/record.h"

/* Words of other programs, and what is meant here. */
static const struct {
	const char *word, *here;
} guesses[] = {
    {"commit",
	"a sandbox makes no image: \"handrail get PATH [FILE]\" copies out of it, \"handrail "
	"build\" makes the images that sandboxes are made of"},
    {"destroy", "\"handrail down\" ends one and removes what belongs to it"},
    {"exit", "\"handrail down\" ends a sandbox; here nothing is open"},
    {"init", "nothing has to be made first: \"handrail up\" starts a sandbox"},
    {"login", "nobody signs in here: keys of services are settings or variables, see handrail(1)"},
    {"pull", "an image is fetched when it is needed: \"handrail up -i IMAGE\""},
    {"push", "nothing is sent to a registry; \"handrail put FILE [PATH]\" copies into the sandbox"},
    {"remove", "\"handrail down\" ends one and removes what belongs to it"},
    {"rename", "a sandbox keeps its name; \"handrail -n NAME up\" starts one of another name"},
    {"set",
	"\"handrail config\" prints the settings; --set KEY=VALUE of each command is for that one, "
	"config.toml for all"},
    {"snapshot", "a sandbox makes no image; \"handrail pause\" keeps one as it is"},
    {"wait", "\"handrail attach\" waits for the end of the command that runs"},
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

/* Options of other programs; cmd NULL: of any command. */
static const struct {
	const char *cmd, *option, *here;
} option_guesses[] = {
    {"up", "-d", "a sandbox stays without it"},
    {"up", "--detach", "a sandbox stays without it"},
    {"up", "--rm", "\"handrail down\" removes it"},
    {"up", "-v", "directories are given by --set sandbox.volumes=HERE:THERE:rw"},
    {"up", "--volume", "directories are given by --set sandbox.volumes=HERE:THERE:rw"},
    {"up", "--mount", "directories are given by --set sandbox.volumes=HERE:THERE:rw"},
    {"run", "-d", "end the command with &, or give up waiting by -t SECONDS"},
    {"run", "--detach", "end the command with &, or give up waiting by -t SECONDS"},
    {"run", "-e", "variables stand in the command: handrail run 'NAME=VALUE COMMAND'"},
    {"run", "--env", "variables stand in the command: handrail run 'NAME=VALUE COMMAND'"},
    {"run", "-w", "the directory is --cwd DIR"},
    {"run", "--workdir", "the directory is --cwd DIR"},
    {"down", "-f", "nothing is asked"},
    {"down", "--force", "nothing is asked"},
    {NULL, "--kind", "it is -r KIND"},
    {NULL, "-V", "\"handrail version\" prints it"},
};

const char *
cli_guess_option(const char *cmd, const char *option)
{
	size_t i;

	for (i = 0; i < sizeof(option_guesses) / sizeof(*option_guesses); i++)
		if (strcmp(option_guesses[i].option, option) == 0 &&
		    (option_guesses[i].cmd == NULL || strcmp(option_guesses[i].cmd, cmd) == 0))
			return option_guesses[i].here;
	return NULL;
}

/* Of one sandbox, which is named by -n, and of nothing else. */
static const char *const of_one[] = {
    "attach", "logs", "pause", "resume", "setup", "top", "up", "url"};

int
cli_surplus(const struct cli_command *cmd, const char *word)
{
	size_t n = sizeof(of_one) / sizeof(*of_one), i = 0;

	cli_say("%s: \"%s\" is one argument too many; usage: handrail %s [OPTION]...%s%s",
	    cmd->name, word, cmd->name, *cmd->args != '\0' ? " " : "", cmd->args);
	while (i < n && strcmp(of_one[i], cmd->name) != 0)
		i++;
	if (strcmp(word, "help") == 0)
		cli_say("did you mean \"handrail %s --help\"?", cmd->name);
	else if (i < n && hr_sid_valid(word))
		cli_say("did you mean \"handrail -n %s %s\"?", word, cmd->name);
	else if (strcmp(cmd->name, "up") == 0 && strchr("./~", *word) != NULL)
		cli_say("%s", cli_guess_option("up", "--volume"));
	else if (strcmp(cmd->name, "up") == 0)
		cli_say("did you mean \"handrail up -i %s\"?", word);
	return CLI_USAGE;
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
