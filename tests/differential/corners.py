"""Corners of the shell in which code stands where data seems to stand: each of these runs what it is given."""

from __future__ import annotations

from collections.abc import Callable

CHANGING = (
    "(( w++ ))", "(( --w ))", "(( w += 1 ))", ": $(( w++ ))", ": $[ w-- ]", "for (( w++; 0; )); do :; done",
    "arr[w++]=1", ": ${arr[w--]}", "[[ w++ -eq 1 ]]", "let w++", "(( v = w, w = 1 ))",
    "while (( w++ < 0 )); do :; done",
)  # fmt: skip
"""Arithmetic that gives `w` another value, after it has looked at the one that is there."""


def texts(words: Callable[[], str], single: Callable[[str], str], inner: str) -> list[str]:
    """Commands that run programs in out-of-the-way places.

    `words` makes a program with arguments, `single` quotes a text as one word, `inner` is a statement to be run.
    """
    return [
        f"arr[1]=$({words()}) arr[2]+=`{words()}`",
        f"arr[1]=<({words()})",
        f"declare arr[2]=$({words()})",
        f"if arr[1]=$({words()}); then :; fi",
        f'case q in a|$({words()})) ;; "$({words()})") ;; esac',
        f"case q in ${{none:-$({words()})}}) ;; $({words()})) ;; esac",
        f"alpha \"${{none:-'$({words()})'}}\"",
        f"none=; alpha \"a ${{none:=b '$({words()})'}} c\"; none=",
        f"[[ \"${{none-'$({words()})'}}\" ]]",
        f"cat <<< \"${{none:-'`{words()}`'}}\"",
        f": $((1+'$({words()})0'))",
        f": ${{arr['$({words()})0']}}",
        f"arr['$({words()})0']=1",
        f"(( 1 + ${{none-'$({words()})1'}} ))",
        f"bash +x -c {single(inner)}",
        f"bash -e +o posix -c {single(inner)}",
        f"( exec <<< {single(inner)}; bash )",
        f"( exec <<< {single(inner)}; . /dev/stdin )",
        f"( exec <<< {single(inner)}; source /proc/self/fd/0 )",
        f"( exec 7< <(echo {single(inner)}); bash <&7 )",
        f"declare -a ds={single('($(' + words() + '))')}",
        f"declare -A dm={single('([$(' + words() + ')]=1)')}",
        f"( declare -i n; n={single('arr[$(' + words() + ')0]')} )",
        f"( declare -i n; read n <<< {single('arr[$(' + words() + ')0]')} )",
        f"( declare -i n; for n in {single('arr[$(' + words() + ')0]')}; do :; done )",
        *(f"w={single('arr[$(' + words() + ')0]')}; {changes}" for changes in CHANGING),
        f"arr=(0 {single('arr[$(' + words() + ')0]')}); (( arr[1]++ ))",
        f"( w={single('arr[$(' + words() + ')0]')}; declare -i w; w+=1 )",
        f"jobs -x {words()}",
        f"bash -c -- {single(inner)}",
        f"bash -c '\"$@\"' zero {words()}",
        f"RANDOM={single('arr[$(' + words() + ')0]')}",
        f"compgen -W {single('$(' + words() + ')')}",
        f"coproc bash; echo {single(words())} >&${{COPROC[1]}}; eval 'exec '${{COPROC[1]}}'>&-'; wait",
    ]
