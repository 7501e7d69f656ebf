"""The functions of handrail_skills under a shorter name."""

from handrail_skills import *  # noqa: F401,F403
from handrail_skills import __all__  # noqa: F401
