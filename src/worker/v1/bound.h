/* handrail-bound: limit of a command's output streams, the note at their end, and the file that
 * stops the command. */
#ifndef HR_WORKER_V1_BOUND_H
#define HR_WORKER_V1_BOUND_H

#define HR_BOUND_BYTES (64u << 20)
#define HR_BOUND_NOTE "\nhandrail: the command was ended: its output has more than 64 MiB\n"
#define HR_BOUND_STOP "stop"

#endif
