"""`discreet completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from discreet.cli.options import argument, choice, command


@command()
def completion(shell: str = argument("shell", "Your shell.", choice("bash", "zsh", "fish"))) -> None:
    """Print the shell completion of these commands.

    In the start-up file of bash or zsh: eval "$(discreet completion bash)". In fish: discreet completion fish | source.
    """
    from click.shell_completion import get_completion_class

    from discreet.cli.app import app

    found = get_completion_class(shell)
    assert found is not None
    print(found(app, {}, "discreet", "_DISCREET_COMPLETE").source())
