"""netqosctl completion: a script for the shell, made from the table of commands, so that it never lags behind."""

from __future__ import annotations

from netqos.cli.arguments import COMMANDS, COMMON
from netqos.cli.commandform import Command
from netqos.cli.commands.common import DONE, Call

PODS = "netqosctl pods --names 2>/dev/null"
NAMES = " ".join(command.name for command in COMMANDS)
COMMON_OPTIONS = tuple(one.name for one in COMMON)


def run(call: Call) -> int:
    """Print the script of one shell."""
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[call.arguments.shell]
    call.screen.out.write(make())
    return DONE


def _options(command: Command) -> tuple[str, ...]:
    own = tuple(one.name for one in command.arguments if one.name.startswith("--"))
    return (*own, *COMMON_OPTIONS, "--help")


def _words(command: Command) -> str:
    """What may follow the command: its options, and the words of its positional argument."""
    choices = [word for one in command.arguments if not one.name.startswith("--") for word in one.choices]
    return " ".join((*_options(command), *choices))


def _takes_pod(command: Command) -> bool:
    return any(one.is_pod for one in command.arguments)


def _takes_file(command: Command) -> bool:
    return any(one.is_file for one in command.arguments)


def _bash() -> str:
    def case(command: Command) -> str:
        pods = f" $({PODS})" if _takes_pod(command) else ""
        return f'        {command.name}) words="{_words(command)}{pods}" ;;'

    cases = "\n".join(map(case, COMMANDS))
    return f"""# bash completion of netqosctl: source <(netqosctl completion bash)
_netqosctl() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" command="" words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $word in -*) ;; *) command=$word; break ;; esac
    done
    case $command in
        "") words="{NAMES} {" ".join(COMMON_OPTIONS)} --help --version" ;;
{cases}
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _netqosctl netqosctl
"""


def _zsh() -> str:
    def case(command: Command) -> str:
        pods = f" ${{(f)$({PODS})}}" if _takes_pod(command) else ""
        files = "; _files" if _takes_file(command) else ""
        return f"        {command.name}) compadd -- {_words(command)}{pods}{files} ;;"

    listed = "\n".join(f"        '{command.name}:{_plain(command.help)}'" for command in COMMANDS)
    cases = "\n".join(map(case, COMMANDS))
    return f"""#compdef netqosctl
# zsh completion of netqosctl: source <(netqosctl completion zsh)
_netqosctl() {{
    local -a known
    known=(
{listed}
    )
    if (( CURRENT == 2 )); then
        _describe command known
        return
    fi
    case $words[2] in
{cases}
    esac
}}
compdef _netqosctl netqosctl
"""


def _fish() -> str:
    lines = ["# fish completion of netqosctl: netqosctl completion fish | source", "complete -c netqosctl -f"]
    for command in COMMANDS:
        lines.append(
            f"complete -c netqosctl -n __fish_use_subcommand -a {command.name} -d '{_plain(command.help)}'"
        )
        seen = f"complete -c netqosctl -n '__fish_seen_subcommand_from {command.name}'"
        lines += [f"{seen} -l {option.removeprefix('--')}" for option in _options(command)]
        choices = [word for one in command.arguments if not one.name.startswith("--") for word in one.choices]
        if choices:
            lines.append(f"{seen} -a '{' '.join(choices)}'")
        if _takes_pod(command):
            lines.append(f"{seen} -a '({PODS})'")
        if _takes_file(command):
            lines.append(f"{seen} -F")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return text.replace("'", "").replace(":", "")
