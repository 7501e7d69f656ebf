"""handrail's sandboxes for Python: a client for scripts (Sandbox), an environment of Harbor (Handrail) and, by its
entry point, a sandbox provider of Inspect AI ("handrail"). The last two are loaded when they are asked for.
handrail_env.openhands is for agents of OpenHands V1."""

from .client import Branches, BusyError, Executed, HandrailError, Sandbox

__all__ = ["Branches", "BusyError", "Executed", "HandrailError", "Sandbox", "Handrail"]
__version__ = "0.1"


def __getattr__(name):
    if name == "Handrail":
        from .harbor import Handrail
        return Handrail
    raise AttributeError(name)
