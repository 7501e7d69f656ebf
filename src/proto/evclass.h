/* hr_evclass: lists the arguments of the original's event classes: one constant row per class
 * (doc/actions.md, "Types and arguments"). The order of the rows is that of the lists in the error
 * texts. */
#ifndef HR_PROTO_EVCLASS_H
#define HR_PROTO_EVCLASS_H

#include <stdbool.h>
#include <stddef.h>

enum hr_arg_default {
	HR_ARG_END = 0, /* ends a list of arguments */
	HR_ARG_REQUIRED,
	HR_ARG_NULL,
	HR_ARG_FALSE,
	HR_ARG_TRUE,
	HR_ARG_INT,  /* the default is `number` */
	HR_ARG_STR,  /* the default is `text` */
	HR_ARG_LIST, /* the default is an empty list */
	HR_ARG_DICT, /* the default is an empty dictionary */
};

struct hr_arg_spec {
	const char *name;
	enum hr_arg_default def;
	int number;
	const char *text;
};

struct hr_event_class {
	const char *type;   /* "run" */
	const char *member; /* member of the enumeration: "RUN" */
	const char *cls;    /* "CmdRunAction" */
	bool open;          /* the class takes unknown arguments and ignores them */
	const struct hr_arg_spec *args;
	bool runnable;      /* a sandbox performs the action; other actions are the client's own */
	const char *module; /* an observation's, below openhands.events.observation; NULL: none */
};

extern const struct hr_event_class hr_action_classes[];
extern const size_t hr_action_classes_n;
extern const struct hr_event_class hr_observation_classes[];
extern const size_t hr_observation_classes_n;

/* Returns the class of that type, or NULL if there is none. */
const struct hr_event_class *hr_action_class(const char *type, size_t len);
const struct hr_event_class *hr_observation_class(const char *type, size_t len);

/* Returns the spec of an argument, or NULL if the class lacks it. */
const struct hr_arg_spec *hr_event_class_arg(const struct hr_event_class *c, const char *name);

#endif
