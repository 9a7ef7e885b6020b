"""An option has one name and one meaning in all commands, and what belongs together becomes one argument."""

from collections import defaultdict

import click
import pytest

from discreet.cli import options
from discreet.cli.app import OLD_OPTIONS, app


def commands(command=app, path=()):
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


SHARED = [
    *("user", "nulls", "bad-rows", "input-format"),
    *("delta", "ledger", "account", "charge-id", "quiet", "explain", "plot"),
]


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_option_means_the_same_everywhere(name):
    found = defaultdict(list)
    for path, command in commands():
        for option in command.params:
            if f"--{name}" in option.opts:
                kind = option.type.to_info_dict()
                found[option.help, str(kind)].append(path)
    assert len(found) == 1, dict(found)


def test_every_command_and_option_says_what_it_is():
    listed = dict(commands())
    assert len(listed) >= 20
    for path, command in listed.items():
        assert command.get_short_help_str(), path
        for parameter in command.params:
            assert parameter.help.endswith("."), (path, parameter)


@pytest.mark.parametrize("path", [(), ("ledger",), ("pan",), ("party",)])
def test_lists_of_commands_fit_a_terminal(path):
    group = app
    for name in path:
        group = group.get_command(click.Context(group), name)
    shown = group.get_help(click.Context(group, terminal_width=80)).splitlines()
    listed = [line for line in shown if line.startswith("  ")]
    assert len(listed) >= 3
    assert not [line for line in listed if line.endswith("...") or len(line) > 80]


@pytest.mark.parametrize(("old", "new"), sorted(OLD_OPTIONS.items()))
def test_old_spellings_are_understood_and_told(old, new, capsys, monkeypatch):
    monkeypatch.setattr(click.Group, "parse_args", lambda group, ctx, args: args)

    def understood(*arguments):
        return app.parse_args(click.Context(app), [*arguments])

    assert understood("top", old, "visitor") == ["top", new, "visitor"]
    assert understood(f"{old}=x=y") == [f"{new}=x=y"]
    assert capsys.readouterr().err.splitlines() == 2 * [f"discreet: {old} is now called {new}"]
    assert understood("--columns", "a") == ["--columns", "a"]


def test_options_that_belong_together_become_one_argument(capsys):
    @options.command(
        options.FILES,
        options.reading(),
        options.BUDGET,
        options.PAYING_BY_NAME,
        options.text_format(),
        options.QUIET,
    )
    def count(files, source, budget, paying, as_json):
        """Count rows."""
        click.echo(f"{files} {source} {budget} {paying.payer} {paying.charge_id} {as_json}")

    count(["a", "b", "--column", "c", "--epsilon", "1", "--nulls", "skip", "--format", "json"], standalone_mode=False)
    shown = capsys.readouterr().out
    source = "Source(columns=('c',), nulls='skip', where=None, input_format=None, header=True, delimiter=None, "
    source += "quote=None, encoding=None, bad_rows='skip')"
    assert shown == f"('a', 'b') {source} epsilon=1 None None True\n"
    names = [option.opts[0] for option in count.params]
    assert names[:3] == ["files", "--column", "--nulls"]
    assert names[-1] == "--quiet"


def test_commands_are_loaded_when_they_are_asked_for():
    import subprocess
    import sys

    script = "import sys\nfrom discreet.cli.app import app\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "discreet.cli.app" in loaded
    assert not {"discreet.cli.top", "discreet.cli.pan", "discreet.cli.options"} & set(loaded)


@pytest.mark.parametrize("command", ["run", "token", "status", "backup", "restore"])
def test_commands_of_the_service_need_its_folder(command):
    options_of_it = app.get_command(click.Context(app), "service").commands[command].params
    assert [option.required for option in options_of_it if "--data" in option.opts] == [True]
