#!/usr/bin/env python3
"""Repositories and tokens of git's providers: cloned into a sandbox from a server of this machine, and the
tokens looked for where they must not be."""

import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.gitserver import GitServer, make_repository  # noqa: E402
from lib.host import Host  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

TOKEN = "ghp_%d" % os.getpid()
PROVIDERS = {"github": ("GITHUB", "x-access-token"), "gitlab": ("GITLAB", "oauth2"),
             "bitbucket": ("BITBUCKET", "x-token-auth")}


class Place(Host):
    """A user with tokens, and the provider that knows them."""

    def __init__(self, provider="github", token=TOKEN, **more):
        super().__init__(GIT_CONFIG_SYSTEM="/dev/null", LC_ALL="C.UTF-8")
        variable, user = PROVIDERS[provider]
        make_repository(self.path("git", "org", "repo.git"))
        known = dict([token.split(":")]) if ":" in token else {user: token}
        self.server = GitServer(self.path("git"), known, **more)
        self.env.update({variable + "_TOKEN": token, variable + "_HOST": self.server.url})
        self.token = token

    def __enter__(self):
        self.server.__enter__()
        return super().__enter__()

    def __exit__(self, *unused):
        try:
            super().__exit__(*unused)
        finally:
            self.server.__exit__()

    def secret_files(self, *where):
        """Which files below these hold the token."""
        found = []
        for folder, _, names in os.walk(self.path(*where)):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        if self.token.encode() in f.read():
                            found.append(os.path.relpath(path, self.top))
        return found


def cloned():
    with Place() as h:
        notes = h("up").stderr
        done = h("repo", "clone", "org/repo")
        equal((done.returncode, done.stdout), (0, "repo\n"), done.stderr)
        equal(h.ok("run", "cat file; git status | head -1 | grep -c openhands-workspace-"), "in main\n1\n",
              "the shell is there, on a branch of its own")
        equal(h.ok("run", "git remote get-url origin"), h.server.url + "/org/repo.git\n", "without a token")
        before = len(h.server.seen)
        equal(h.ok("run", "git fetch -q && echo fetched"), "fetched\n", "git still knows how to ask")
        equal(len(h.server.seen) > before, True, "it did")
        equal(h.server.shown, [], "no command line had the token meanwhile")
        equal([p for p in h.server.seen if h.token in p], [], "nor a request's line")
        notes += done.stderr + h.ok("logs") + h.ok("ps", "--json") + h.ok("config")
        equal(h.token in notes, False, "nor what was printed")
        equal(h.secret_files("state") + h.secret_files("tmp"), [], "nor records, logs and the repository")
        equal(h.secret_files("home"), [], "nor the caller's home directory")
        h.fails(1, "already exists and is not an empty directory", "repo", "clone", "org/repo")


def branches():
    with Place() as h:
        h.ok("up")
        equal(json.loads(h.ok("repo", "clone", "--json", "-b", "other", "org/repo")),
              {"sid": "default", "directory": "repo"})
        equal(h.ok("run", "cat more; git branch --show-current"), "in other\nother\n", "the one that was named")
        h.ok("run", "cd ..; rm -rf repo")
        h.fails(1, "git checkout failed: error: pathspec 'missing'", "repo", "clone", "-b", "missing", "org/repo")
        for name in ("", "-f", "--orphan=x"):
            h.fails(1, "is not a branch", "repo", "clone", "--branch=" + name, "org/repo")


def providers():
    for provider, token in (("github", TOKEN), ("gitlab", TOKEN), ("bitbucket", TOKEN), ("bitbucket", "me:" + TOKEN)):
        variable = PROVIDERS[provider][0]
        with Place(provider, token) as h:
            h.ok("up", "-s", "sandbox.selected_repo=org/repo")
            equal(h.ok("repo", "clone", "-s", "sandbox.selected_repo=org/repo"), "repo\n", provider)
            equal(h.ok("run", "cat file; echo $%s_TOKEN" % variable), "in main\n%s\n" % h.token, "variable")
            equal((h.server.shown, h.secret_files("state")), ([], []), "not seen")


def refused():
    with Place() as h:
        h.ok("up")
        h.fails(1, "Git provider authentication issue when getting remote URL", "repo", "clone", "org/missing")
        h.env["GITHUB_TOKEN"] = "wrong"
        done = h("repo", "clone", "org/repo")
        equal((done.returncode, "does not give org/repo: status 401" in done.stderr), (1, True), done.stderr)
        del h.env["GITHUB_TOKEN"]
        h.fails(1, "Git provider authentication issue when getting remote URL", "repo", "clone", "org/repo")
        for name in ("repo", "org/", "/repo", "org/..", "-x/y", "org/re po", "org/$(id)",
                     "https://user:secret@example.org/x"):
            done = h("repo", "clone", "--", name)
            equal((done.returncode, "is not a repository" in done.stderr, "secret" in done.stderr), (1, True, False),
                  name + ": " + done.stderr)
        h.fails(2, "or set sandbox.selected_repo", "repo", "clone")
        h.env["GITHUB_TOKEN"] = h.token
        for host, text in (("http://example.org", "must be https; http is allowed for this machine only"),
                           ("user@example.org", "GITHUB_HOST is not a host name")):
            h.env["GITHUB_HOST"] = host
            h.fails(1, text, "repo", "clone", "org/repo")
        equal(h.ok("run", "ls"), "", "nothing was cloned")


def by_address():
    """A URL is taken as it is; no provider is asked, and no token given."""
    with Place() as h:
        h.ok("up")
        equal(h.ok("repo", "clone", "file://" + h.path("git", "org", "repo.git")), "repo\n")
        equal(h.ok("run", "cat file"), "in main\n")
        equal(h.server.seen, [], "nobody was asked")
        h.fails(1, "git clone failed", "repo", "clone", "file://" + h.path("git", "missing"))


def an_empty_workspace():
    """Nothing to clone: with the setting it becomes a repository, without it nothing is done."""
    with Place() as h:
        h.env["WORKSPACE_BASE"] = h.path("work")
        h.ok("up")
        h.fails(2, "name the repository", "repo", "clone")
        equal(os.listdir(h.path("work")), [], "nothing")
        setting = ("-s", "core.init_git_in_empty_workspace=true")
        equal(h.ok("repo", "clone", *setting), "")
        equal(os.listdir(h.path("work")), [".git"], "a repository")
        equal(h.ok("run", "git config --global --get-all safe.directory"), h.path("work") + "\n", "which is trusted")
        equal(json.loads(h.ok("repo", "clone", "--json", *setting)), {"sid": "default", "directory": ""})
        equal(h.server.seen, [], "nobody was asked")


def several_tokens():
    """Each that a command mentions, by one command."""
    with Place() as h:
        h.ok("up")
        h.env.update(GITHUB_TOKEN="ghp_2", GITLAB_TOKEN="glpat_2", BITBUCKET_TOKEN="bb_2")
        equal(h.ok("run", "echo $GITHUB_TOKEN ${gitlab_token-} $GITLAB_TOKEN"), "ghp_2 glpat_2\n", "both")
        equal(h.ok("run", "printenv | grep -c ^BITBUCKET_T; true"), "0\n", "not the third")


def tokens_of_the_moment():
    """A command that mentions a token has it as it is now, asked for where WEB_HOST says."""
    with Place(new_token="ghp_renewed") as h:
        h.ok("up")
        equal(h.ok("run", "echo $GITHUB_TOKEN"), h.token + "\n", "from the start")
        h.env["GITHUB_TOKEN"] = "ghp_other"
        equal(h.ok("run", "echo ${GITHUB_TOKEN}"), "ghp_other\n", "another one")
        h.env["WEB_HOST"] = h.server.url
        equal(h.ok("run", "echo $GITHUB_TOKEN"), "ghp_renewed\n", "a new one")
        equal(h.server.refreshed, [("/api/refresh-tokens?provider=github&sid=default", h.record()["backend"]["key"])])
        h.ok("run", "true")
        equal(len(h.server.refreshed), 1, "only where it is mentioned")
        h.env["WEB_HOST"] = "http://example.org"
        done = h("run", "echo $GITHUB_TOKEN")
        equal((done.stdout, "WEB_HOST sent no new token for github" in done.stderr), ("ghp_renewed\n", True),
              "the old one stays")


def not_in_the_pool():
    with Place() as h:
        h.ok("pool", "1")
        names = [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")]
        # looked into under another name, without naming the variable, which would give it
        with open(h.path("state", "warm", names[0])) as f, open(h.path("state", "peek.json"), "w") as peek:
            json.dump(dict(json.load(f), sid="peek"), peek)
        pid = h.record("peek")["backend"]["pid"]
        equal(h.ok("run", "-n", "peek", "printenv | grep -c ^GITHUB_T; true"), "0\n", "who waits has none")
        os.unlink(h.path("state", "peek.json"))
        h.ok("up")
        equal(h.record()["backend"]["pid"], pid, "it is taken")
        equal(h.ok("run", "printenv GITHUB_TOKEN"), h.token + "\n", "and given the token")


def main():
    if not shutil.which("git"):
        skip_all("no git (Debian: git)")
    process.become_subreaper()
    tap = Tap()
    for test in (cloned, branches, providers, refused, by_address, an_empty_workspace, several_tokens,
                 tokens_of_the_moment, not_in_the_pool):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
