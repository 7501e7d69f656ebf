#!/usr/bin/env python3
"""Microagents, found from the host: in the workspace, in a repository in it, and in what the organisation keeps
for all of its repositories, with repositories on disk and from a provider on this machine."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.gitserver import GitServer, make_repository  # noqa: E402
from lib.host import Host  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

TOKEN = "ghp_%d" % os.getpid()
KNOWLEDGE = "---\nname: knowing\ntype: knowledge\ntriggers:\n- \"über\"\n---\n# Know\n"
GIT_ENV = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")


def write(*names, text=""):
    os.makedirs(os.path.dirname(os.path.join(*names)), exist_ok=True)
    with open(os.path.join(*names), "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def organisation(path, *names):
    """A bare repository with microagents of these names, and what is none."""
    work = path + ".work"
    for name in names:
        write(work, "microagents", name + ".md", text="from " + os.path.basename(path))
    write(work, "microagents", "README.md", text="none")
    write(work, "other.md", text="none")
    for argv in (["init", "-q", "-b", "main", work], ["-C", work, "add", "."],
                 ["-C", work, "-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x"],
                 ["clone", "-q", "--bare", work, path]):
        subprocess.run(["git"] + argv, env=GIT_ENV, check=True)
    shutil.rmtree(work)


class Place(Host):
    """A user with a workspace that can be looked into."""

    def __init__(self, **env):
        super().__init__(GIT_CONFIG_SYSTEM="/dev/null", LC_ALL="C.UTF-8")
        self.work = self.path("work")
        os.mkdir(self.work)
        self.env.update(env, WORKSPACE_BASE=self.work)

    def found(self, *argv):
        """source, name and content of each, and the notes."""
        done = self("repo", "microagents", "--json", *argv)
        equal(done.returncode, 0, done.stderr)
        return [(m["source"], m["name"], m["content"]) for m in json.loads(done.stdout)], done.stderr


def in_the_workspace():
    with Place() as h:
        h.ok("up")
        equal(h.found(), ([], ""), "there are none")
        agents = os.path.join(h.work, ".openhands", "microagents")
        write(agents, "knowledge.md", text=KNOWLEDGE)
        equal(h.found(), ([("repository", "knowledge", KNOWLEDGE)], ""), "only what exists")
        write(agents, "sub", "deep", "repo.md", text="---\ntype: repo\n---\n")
        write(agents, "README.md", text="none")
        write(agents, "notes.txt", text="none")
        write(h.work, ".openhands_instructions", text="# All\n")
        want = [("repository", "repo_legacy", "# All\n"), ("repository", "knowledge", KNOWLEDGE),
                ("repository", "sub/deep/repo", "---\ntype: repo\n---\n")]
        equal(h.found(), (want, ""), "the file from before, too, and folders")
        equal(h.ok("repo", "microagents"),
              "repository   repo_legacy\nrepository   knowledge\nrepository   sub/deep/repo\n")
        one = json.loads(h.ok("repo", "microagents", "-j"))[2]
        equal(one["path"], h.work + "/.openhands/microagents/sub/deep/repo.md", "where it is")
        write(agents, "bad.md", text=b"\xff\xfe")
        write(agents, "zero.md", text=b"a\0b")
        found, notes = h.found()
        equal((found, "bad.md was not loaded: it is not UTF-8" in notes, "zero.md" in notes), (want, True, True), notes)
        equal(os.listdir(h.path("tmp")), [n for n in os.listdir(h.path("tmp")) if "microagents" not in n], "no copy")


def of_any_size():
    """A folder that holds more than microagents may is neither loaded to its end nor unpacked."""
    with Place() as h:
        h.ok("up")
        agents = os.path.join(h.work, ".openhands", "microagents")
        write(agents, "a.md", text="A")
        with open(os.path.join(agents, "zeros"), "wb") as f:
            f.truncate(64 << 20)
        h.fails(1, agents + " takes more than 64 MiB", "repo", "microagents")
        equal([n for n in os.listdir(h.path("tmp")) if "microagents" in n or n.endswith(".zip")], [], "nothing is left")
        os.truncate(os.path.join(agents, "zeros"), 63 << 20)
        equal(h.found(), ([("repository", "a", "A")], ""))


def in_a_repository():
    """Below its directory, with slashes at the end of its name and without."""
    with Place() as h:
        h.ok("up")
        write(h.work, "repo", ".openhands", "microagents", "a.md", text="A")
        write(h.work, "repo", ".openhands_instructions", text="L")
        write(h.work, ".openhands", "microagents", "not.md", text="of the workspace")
        want = [("repository", "repo_legacy", "L"), ("repository", "a", "A")]
        for argv in (["file:///nowhere/repo"], ["file:///nowhere/repo//"], ["-s", "sandbox.selected_repo=org/repo"]):
            found, _ = h.found(*argv)
            equal(found, want, argv)
        equal("file:///repo belongs to no organisation" in h.found("file:///repo")[1], True)
        for name in ("repo", "https://u:p@example.org/a/b", "a/..", "-x/y"):
            h.fails(1, "is not a repository", "repo", "microagents", "--", name)


def of_an_organisation_on_disk():
    with Place() as h:
        h.ok("up")
        organisation(h.path("org", ".openhands.git"), "one", "two")
        url = "file://" + h.path("org", "repo.git")
        equal(h.found(url), ([("organization", "one", "from .openhands.git"),
                              ("organization", "two", "from .openhands.git")], ""))
        equal(os.listdir(h.work), [], "its clone is removed")
        os.mkdir(os.path.join(h.work, "org_openhands_org"))
        write(h.work, "org_openhands_org", "mine", text="stays")
        found, notes = h.found(url)
        equal((found, "no microagents of the organisation were cloned" in notes), ([], True), notes)
        equal(os.listdir(os.path.join(h.work, "org_openhands_org")), ["mine"], "what was there stays")


class Provider:
    """A sandbox, and a provider that has org/repo and what is named."""

    def __init__(self, provider, *names):
        variable, user = {"github": ("GITHUB", "x-access-token"), "gitlab": ("GITLAB", "oauth2")}[provider]
        self.h = Place()
        make_repository(self.h.path("git", "org", "repo.git"))
        for name in names:
            organisation(self.h.path("git", "org", name + ".git"), "one")
        self.server = GitServer(self.h.path("git"), {user: TOKEN}, smart=True)
        self.h.env.update({variable + "_TOKEN": TOKEN, variable + "_HOST": self.server.url})

    def __enter__(self):
        self.server.__enter__()
        self.h.__enter__()
        return self

    def __exit__(self, *unused):
        try:
            self.h.__exit__()
        finally:
            self.server.__exit__()

    def asked(self):
        """Names of the organisation's that the provider was asked for."""
        names = [p.replace("%2F", "/").rsplit("/", 1)[1] for p in self.server.seen if p.startswith("/api/")]
        del self.server.seen[:]
        return [n for n in names if n != "repo"]


def of_an_organisation_of_a_provider():
    """One attempt, for the name that its kind of provider allows; the repository's own folder is the same."""
    for provider, name, wrong in (("github", ".openhands", "openhands-config"),
                                  ("gitlab", "openhands-config", ".openhands")):
        with Provider(provider, name, wrong) as p:
            p.h.ok("up")
            write(p.h.work, "repo", ".openhands", "microagents", "own.md", text="O")
            write(p.h.work, "repo", "openhands-config", "microagents", "not.md", text="N")
            found, notes = p.h.found("org/repo")
            equal(found, [("organization", "one", "from %s.git" % name), ("repository", "own", "O")], notes)
            equal(p.asked(), [name], provider)
            equal((p.server.shown, TOKEN in notes + p.h.ok("logs")), ([], False), "the token is not seen")
            equal(sorted(os.listdir(p.h.work)), ["repo"], "its clone is removed")


def without_an_organisation():
    """It has none, or the look-up fails: nothing, after one attempt, and no error."""
    with Provider("gitlab") as p:
        p.h.ok("up")
        equal(p.h.found("org/repo"), ([], ""), "none")
        equal(p.asked(), ["openhands-config"])
        equal(p.h.found("org/missing"), ([], ""), "unknown: not GitLab's name then")
        equal(p.asked(), ["missing", ".openhands"])
        p.h.env["GITLAB_TOKEN"] = "wrong"
        equal(p.h.found("org/repo"), ([], ""), "not let in")
        equal(p.asked(), [".openhands"])
        del p.h.env["GITLAB_TOKEN"]
        equal((p.h.found("org/repo"), p.asked()), (([], ""), []), "nobody to ask")


def of_the_kind_cli():
    with Place(RUNTIME="cli") as h:
        h.ok("up")
        write(h.work, ".openhands", "microagents", "a.md", text="A")
        organisation(h.path("org", ".openhands.git"), "one")
        equal(h.found()[0], [("repository", "a", "A")])
        equal(h.found("file://" + h.path("org", "repo.git"))[0], [("organization", "one", "from .openhands.git")])


def main():
    if not shutil.which("git"):
        skip_all("no git (Debian: git)")
    process.become_subreaper()
    tap = Tap()
    for test in (in_the_workspace, of_any_size,
                 in_a_repository, of_an_organisation_on_disk, of_an_organisation_of_a_provider,
                 without_an_organisation, of_the_kind_cli):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
