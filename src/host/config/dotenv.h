/* hr_dotenv: parses the lines of a ".env": NAME=value, optionally with "export " before it, quotes
 * round the value, and comments. */
#ifndef HR_HOST_CONFIG_DOTENV_H
#define HR_HOST_CONFIG_DOTENV_H

/* Returns env and, after it, the variables of text that env lacks, NULL-terminated. Changes text,
 * and the result points into it; the caller frees only the array. Returns NULL without memory. No
 * I/O. */
const char **hr_dotenv_merge(const char *const *env, char *text);

#endif
