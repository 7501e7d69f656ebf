# Completion of handrail(1) for fish. The program knows its commands and options best.
handrail completion fish | source
