"""Commands that download: which packages, which program, which arguments, and what is refused."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError
from sandboxes.core.python_env import VERSION
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.packages.invocations import RUNNERS, invocation_of
from sandboxes.mcp.packages.requested import ServerPackages

UNDERSTOOD = [
    ("uvx mcp-server-time", "python", ["mcp-server-time"], "mcp-server-time", True, []),
    (
        "uvx mcp-server-time==2026.10.19 --local-timezone UTC",
        *("python", ["mcp-server-time==2026.10.19"], "mcp-server-time", True),
        ["--local-timezone", "UTC"],
    ),
    ("uvx ruff@0.17.1 -q", "python", ["ruff==0.17.1"], "ruff", True, ["-q"]),
    ("uvx ruff@latest", "python", ["ruff"], "ruff", True, []),
    ("uvx -q --isolated 'mcp[cli]' dev", "python", ["mcp[cli]"], "mcp", True, ["dev"]),
    ("uvx --from pkg prog --from x", "python", ["pkg"], "prog", False, ["--from", "x"]),
    ("uvx --from='pkg>=1, <2' prog", "python", ["pkg>=1,<2"], "prog", False, []),
    ("uvx --with 'mcp<2' srv", "python", ["srv", "mcp<2"], "srv", True, []),
    ("uvx --with a,b -w c srv", "python", ["srv", "a", "b", "c"], "srv", True, []),
    (f"uvx --python {VERSION} srv", "python", ["srv"], "srv", True, []),
    (f"uvx -p cpython@{VERSION}.4 srv", "python", ["srv"], "srv", True, []),
    ("/home/me/.local/bin/uvx srv", "python", ["srv"], "srv", True, []),
    ("uv tool run srv x", "python", ["srv"], "srv", True, ["x"]),
    ("pipx run srv==1 x", "python", ["srv==1"], "srv", True, ["x"]),
    ("pipx run --spec srv==1 other", "python", ["srv==1"], "other", False, []),
    ("npx srv", "node", ["srv"], "srv", True, []),
    ("npx -y @s/p@1.2.3 /data", "node", ["@s/p@1.2.3"], "p", True, ["/data"]),
    ("npx -y -- srv@^1.2 -y", "node", ["srv@^1.2"], "srv", True, ["-y"]),
    ("npx --yes --package=@s/p prog a", "node", ["@s/p"], "prog", False, ["a"]),
    ("npx -p a -p b@2 prog", "node", ["a", "b@2"], "prog", False, []),
    ("npm exec -y -- srv a", "node", ["srv"], "srv", True, ["a"]),
    ("bunx srv@latest", "node", ["srv@latest"], "srv", True, []),
    ("bun x srv", "node", ["srv"], "srv", True, []),
    ("cmd /c npx -y srv", "node", ["srv"], "srv", True, []),
    ("npx.cmd -y srv", "node", ["srv"], "srv", True, []),
]


@pytest.mark.parametrize(("line", "kind", "needs", "program", "own", "arguments"), UNDERSTOOD)
def test_what_is_understood(
    line: str, kind: str, needs: list[str], program: str, own: bool, arguments: list[str]
) -> None:
    packages = ServerPackages.model_validate(
        {"kind": kind, "requirements": needs, "own_program": own}
    )
    assert invocation_of(shlex.split(line)) == (program, tuple(arguments), packages)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("uvx --frozen srv", "option --frozen is not understood; understood: --from, "),
        ("uvx --index-url https://me:pw@x/ srv", "option --index-url names an index"),
        ("npx --registry=https://x/ srv", "only from those of your own npm settings"),
        ("uvx --python 3.7 srv", f"servers run on Python {VERSION}"),
        ("npx -c 'srv a'", "option -c is not understood"),
        ("uvx --from", "option --from needs a value"),
        ("uvx --isolated", "no package or program is named"),
        ("uvx --from git+https://x/y srv", "names no package of an index"),
        ("uvx --from ./folder srv", "install it beforehand and give its own program"),
        ("npx github:me/srv", "names no package of an index"),
        ("npx me/srv", "names no package of an index"),
        ("npx ./srv", "names no package of an index"),
        ("npx https://x/srv.tgz", "names no package of an index"),
    ],
)
def test_what_is_refused_names_it_and_says_what_to_do(line: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        invocation_of(shlex.split(line))
    assert said in str(refused.value)
    assert str(refused.value).startswith(("uvx: ", "npx: "))


@pytest.mark.parametrize("line", ["python x.py", "uv run x.py", "node x.js", "npm start", "docker"])
def test_other_commands_download_nothing(line: str) -> None:
    assert invocation_of(shlex.split(line)) is None


def test_a_password_in_a_package_s_address_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        invocation_of(["uvx", "--from", "git+https://me:hunter2@x/y", "srv"])
    assert "hunter2" not in str(refused.value)


WORDS = st.text(alphabet="abz-=@./:<> \n\u00e9", max_size=8)


@given(st.sampled_from(sorted(RUNNERS)), st.lists(WORDS, max_size=5))
def test_every_line_is_packages_of_an_index_or_refused(
    runner: tuple[str, ...], words: list[str]
) -> None:
    try:
        found = invocation_of([*runner, *words])
    except ConfigError:
        return
    assert found is not None
    for requirement in found.packages.requirements:
        assert not requirement.startswith(("-", ".", "/"))
        assert ":" not in requirement
        assert not set(requirement) & {" ", "\n"}
    assert list(found.arguments) == words[len(words) - len(found.arguments) :]


def test_a_command_line_names_its_server_after_the_package() -> None:
    made = server_of_command("npx -y @scope/server-memory@1.0 /data")
    assert (made.name, made.command) == ("server_memory", ("server-memory", "/data"))
