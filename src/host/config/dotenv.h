/* hr_dotenv: the lines of a ".env": NAME=value, perhaps with "export " before it, quotes round the
 * value, comments. */
#ifndef HR_HOST_CONFIG_DOTENV_H
#define HR_HOST_CONFIG_DOTENV_H

/* env and behind it those of text's lines whose names it lacks, NULL-terminated. text is changed,
 * and what is returned leads into it; the caller frees the array only. NULL: no memory. Pure. */
const char **hr_dotenv_merge(const char *const *env, char *text);

#endif
