/* hr_execcred: a program that a kubeconfig names, which prints credentials. */
#ifndef HR_HOST_KUBERNETES_EXECCRED_H
#define HR_HOST_KUBERNETES_EXECCRED_H

#include "base/buf.h"
#include "base/strv.h"

struct json_object;

/* exec: {"command", "args", "env", "apiVersion"}. What it prints is appended to out; its messages
 * go where ours would. It has a minute. */
int hr_execcred_run(struct json_object *exec, const char *dir, const struct hr_strv *own_env,
    struct hr_buf *out, struct hr_err *err);

#endif
