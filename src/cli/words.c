/* Finds subcommands by name, and by other programs' names for them. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "base/text/nearest.h"
#include "cli/commands.h"

#define ENDS "\"handrail rm NAME\" ends one and removes what belongs to it"
#define MAKES "\"handrail up\" makes and starts one"
#define PORTS "\"handrail url\" prints a sandbox's address and ports"

/* words of other programs, and their equivalents here */
static const struct {
	const char *word, *here;
} guesses[] = {
    {"commit", "a sandbox makes no image: \"handrail get PATH [FILE]\" copies out of it, "
	       "\"handrail image build\" makes the images that sandboxes are made of"},
    {"destroy", ENDS},
    {"delete", ENDS},
    {"remove", ENDS},
    {"kill", ENDS},
    {"exit", "\"handrail down\" ends a sandbox; here nothing is open"},
    {"init", "no preparation is needed: \"handrail up\" starts a sandbox"},
    {"login", "there is no sign-in: keys of services are settings or variables, see handrail(1)"},
    {"pull", "an image is fetched when it is needed: \"handrail up -i IMAGE\""},
    {"push", "nothing is sent to a registry; \"handrail put FILE [PATH]\" copies into the sandbox"},
    {"rename", "a sandbox keeps its name; \"handrail up NAME\" starts one of another name"},
    {"set", "\"handrail config\" prints the settings; --set KEY=VALUE of each command is for that "
	    "one, config.toml for all"},
    {"wait", "\"handrail attach\" waits for the end of the command that runs"},
    {"cat", "\"handrail read PATH\" prints a file"},
    {"create", MAKES},
    {"launch", MAKES},
    {"info", "\"handrail ps\" lists the sandboxes, \"handrail stats\" prints what one uses, "
	     "\"handrail url\" its address"},
    {"bash", "\"handrail sh\" is a shell in it on this terminal, \"handrail run LINE\" a line for "
	     "its shell"},
    {"cd", "\"handrail run 'cd DIR'\" changes the directory of the shell that all \"handrail run\" "
	   "share"},
    {"copy",
	"\"handrail cp NAME:PATH FILE\" copies out of it, \"handrail cp FILE NAME:PATH\" into it"},
    {"download", "\"handrail get PATH [FILE]\" copies out of it"},
    {"list", "\"handrail ps\" lists the sandboxes, \"handrail ls\" a directory of one"},
    {"python", "\"handrail py CODE\" runs it in the notebook"},
    {"port", PORTS},
    {"ports", PORTS},
    {"restart", "\"handrail stop\" stops a sandbox and \"handrail start\" continues it"},
    {"ssh", "\"handrail sh\" is a terminal in it"},
    {"status", "\"handrail ps\" lists the sandboxes and their states"},
    {"upload", "\"handrail put FILE [PATH]\" copies into it"},
    {"unpause", "\"handrail start\" continues a paused sandbox"},
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

/* options of other programs; cmd NULL: any command */
static const struct {
	const char *cmd, *option, *here;
} option_guesses[] = {
    {"up", "-d", "leave the option out: a sandbox stays until \"handrail down\""},
    {"up", "--detach", "leave the option out: a sandbox stays until \"handrail down\""},
    {"up", "--rm", "\"handrail down\" removes the sandbox"},
    {"up", "-v", "use --set sandbox.volumes=HERE:THERE:rw"},
    {"up", "--volume", "use --set sandbox.volumes=HERE:THERE:rw"},
    {"up", "--mount", "use --set sandbox.volumes=HERE:THERE:rw"},
    {"up", "-m", "use --set sandbox.limits.mem_limit=2g"},
    {"up", "--memory", "use --set sandbox.limits.mem_limit=2g"},
    {"up", "--cpus", "use --set sandbox.limits.cpu_quota=100000, which is one processor"},
    {"up", "--gpus", "use --set sandbox.enable_gpu=true, with -r docker"},
    {"run", "-d", "end the command with &, or give up waiting by -t SECONDS"},
    {"run", "--detach", "end the command with &, or give up waiting by -t SECONDS"},
    {"run", "--workdir", "use --cwd DIR"},
    {"exec", "-d", "end the command with &"},
    {"exec", "--detach", "end the command with &"},
    {"top", "--no-stream", "use --once"},
    {"ls", "-l", "\"handrail run ls -l\" prints modes, sizes and times"},
    {"ls", "-a", "hidden names are listed, too; leave the option out"},
    {"ls", "-R", "\"handrail run find\" lists what is below"},
    {"cp", "-a", "use -o to keep owners and groups"},
    {"stop", "-t", "a sandbox is given the time that it needs"},
    {NULL, "--kind", "use -r BACKEND"},
    {NULL, "-V", "\"handrail version\" prints the version"},
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

bool
cli_number(const char *text, long least, long most, long *ret)
{
	char *end;

	errno = 0;
	*ret = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *ret >= least && *ret <= most;
}

int
cli_surplus(const struct cli_command *cmd, const char *word)
{
	cli_say("%s: \"%s\" is one argument too many; usage: handrail %s [OPTION]...%s%s",
	    cmd->name, word, cmd->name, cmd->args != NULL ? " " : "",
	    cmd->args != NULL ? cmd->args : "");
	if (strcmp(word, "help") == 0)
		cli_say("did you mean \"handrail %s --help\"?", cmd->name);
	else if (cmd == &cli_up && strchr("./~", *word) != NULL)
		cli_say("%s", cli_guess_option("up", "--volume"));
	else if (cmd == &cli_up)
		cli_say("did you mean \"handrail up -i %s\"?", word);
	return CLI_USAGE;
}

const char *
cli_group(const char *name)
{
	size_t i;

	for (i = 0; i < cli_sections_n; i++)
		if (cli_sections[i].group != NULL && strcmp(cli_sections[i].group, name) == 0)
			return cli_sections[i].group;
	return NULL;
}

bool
cli_is_in(const struct cli_command *cmd, const char *group)
{
	const size_t n = strcspn(cmd->name, " ");

	return group != NULL
		   ? cmd->name[n] != '\0' && strncmp(cmd->name, group, n) == 0 && group[n] == '\0'
		   : cmd->name[n] == '\0';
}

const struct cli_command *
cli_command_of(const char *group, const char *name)
{
	const size_t skip = group != NULL ? strlen(group) + 1 : 0;
	size_t i;

	for (i = 0; i < cli_commands_n; i++) {
		const struct cli_command *cmd = cli_commands[i];

		if ((cli_is_in(cmd, group) && strcmp(cmd->name + skip, name) == 0) ||
		    (group == NULL && cmd->alias != NULL && strcmp(cmd->alias, name) == 0))
			return cmd;
	}
	return NULL;
}

/* Returns the group's own word for a command that others call `name`, or `name` itself. */
static const char *
usual(const char *group, const char *name)
{
	static const char *const lists[] = {"ls", "list", NULL};
	static const char *const removes[] = {"remove", "delete", "del", "unset", NULL};

	const char *word = hr_is_one_of(name, removes) ? "rm" : name;

	if (hr_is_one_of(name, lists))
		word = cli_command_of(group, "ls") != NULL ? "ls" : "list";
	return cli_command_of(group, word) != NULL ? word : name;
}

/* Reports an unknown command and the nearest one; name is compared with the last words. */
static void
say_nearest(const char *group, const char *name)
{
	const char *words[128] = {NULL}, *full[128] = {NULL}, *near;
	size_t n = 0, i;

	for (i = 0; i < cli_commands_n && n < 120; i++) {
		const struct cli_command *cmd = cli_commands[i];
		const char *blank = strchr(cmd->name, ' ');

		if (group != NULL && !cli_is_in(cmd, group))
			continue;
		full[n] = cmd->name;
		words[n++] = blank != NULL ? blank + 1 : cmd->name;
		full[n] = words[n] = cmd->alias;
		n += group == NULL && cmd->alias != NULL;
	}
	for (i = 0; i < cli_sections_n && n < 127; i++) {
		full[n] = words[n] = cli_sections[i].group;
		n += group == NULL && cli_sections[i].group != NULL;
	}
	near = hr_nearest(group != NULL ? usual(group, name) : name, words, n);
	for (i = 0; near != NULL && words[i] != near; i++)
		continue;
	if (near != NULL)
		cli_say("there is no command \"%s\"; did you mean \"%s\"?", name, full[i]);
	else
		cli_say("there is no command \"%s\"; see \"handrail %s%s--help\"", name,
		    group != NULL ? group : "", group != NULL ? " " : "");
}

const struct cli_command *
cli_find_command(const char *group, const char *name)
{
	const struct cli_command *cmd = cli_command_of(group, name);

	if (cmd == NULL && group == NULL && guess(name) != NULL)
		cli_say("there is no command \"%s\"; %s", name, guess(name));
	else if (cmd == NULL)
		say_nearest(group, name);
	return cmd;
}
