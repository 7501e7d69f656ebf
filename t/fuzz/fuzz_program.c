/* A line of a program that is a back-end: what is taken has what its kind promises, and what people
 * are shown of it is one line of plain text. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/program/answer.h"
#include "fuzz.h"

static void
plain(const char *text)
{
	for (; *text != '\0'; text++)
		must((unsigned char)*text >= 0x20 && *text != 0x7F);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_program_about about;
	struct hr_program_answer a;
	struct hr_err err = {0};
	const char *word;

	if (hr_program_read((const char *)data, size, NULL, &a, &err) != 0) {
		must(err.msg[0] != '\0');
		plain(err.msg);
	} else if (a.kind == HR_PROGRAM_OK || a.kind == HR_PROGRAM_FOUND) {
		must(a.body != NULL);
		if (hr_program_hello(a.body, &about, &err) == 0) {
			plain(about.title);
			plain(about.lacks);
		}
		if (hr_program_word(a.body, "it", "id", HR_PROGRAM_WORD_MAX, &word, &err) == 0) {
			must(*word != '\0' && strlen(word) <= HR_PROGRAM_WORD_MAX);
			plain(word);
		}
	} else if (a.kind == HR_PROGRAM_ERROR) {
		must(a.body == NULL && a.error.code != HR_OK);
		plain(a.error.msg);
	} else {
		must(a.body == NULL && a.stream >= 0 && a.stream <= 2);
	}
	hr_program_answer_done(&a);
	return 0;
}
