/* handrail-bound: limit of a command's output streams, the note at their end, the file that
 * stops the command, and the recorded code of one that its time limit or the loss of its minder has
 * ended, which clients see as -1. */
#ifndef HR_WORKER_V1_BOUND_H
#define HR_WORKER_V1_BOUND_H

#define HR_BOUND_BYTES (64u << 20)
#define HR_BOUND_NOTE "\nhandrail: the command was ended: its output has more than 64 MiB\n"
#define HR_BOUND_STOP "stop"
#define HR_BOUND_NO_CODE (-1000)

#endif
