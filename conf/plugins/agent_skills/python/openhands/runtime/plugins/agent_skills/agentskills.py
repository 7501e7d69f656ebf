"""The functions of handrail_skills under the name that agents are told. The directories above hold
no __init__.py: where the original package is installed, it is the one that is imported."""

from handrail_skills import *  # noqa: F401,F403
from handrail_skills import __all__  # noqa: F401
