"""The corners of bash that launch scripts use, with what bash 5.2 passes for each."""

from __future__ import annotations

import pytest

from tests.bash.conftest import Follow, words


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a=(0 1 2 3); unset 'a[1]'; a[9]=x; V=\"${a[*]} ${#a[@]} ${a[-1]} ${!a[*]}\"", "0 2 3 x 4 x 0 2 3 9"),
        ("a=(1 2); a+=3; V=\"${a[*]}\"", "13 2"),
        ("b=([3]=x y); V=\"${!b[*]}\"", "3 4"),
        ("declare -A m=([lr]=1 [\"n o\"]=2); m[bs]=4; m+=([tp]=8); k=lr; V=${m[$k]}${m[n o]}${m[bs]}${m[tp]}", "1248"),
        ("c=(x y); V=\"${c[*]/#/--}\"", "--x --y"),
        ("c=(); V=\"[${c[*]+set}]\"", "[]"),
        ("declare -i q=2+3; q+=4; V=$q", "9"),
        ("V=$[1+2]", "3"),
        ("V=$'a\\x41\\u00e9\\'b'", "aAé'b"),
        ("V=`echo \\`echo x\\``", "x"),
        ("case abc in a*) V=1 ;& z) V=${V}2 ;; *) V=3 ;; esac", "12"),
        ("case abc in a*) V=1 ;;& *c) V=${V}2 ;; *) V=3 ;; esac", "12"),
        ("V=0; for x in a b # c d\ndo V=$V$x; done", "0ab"),
        ("a=9; f() { local a=1 b=$a; V=$b; }; f", "9"),
        ("V=1; f() { local V=2; g; }; g() { V=3; }; f", "1"),
        ("f() { (( $1 > 3 )); }; f 5 && V=big || V=small", "big"),
        ("f() { return 1; }; V=0; f || V=7", "7"),
        ("f() { [ $1 = a ] && return 0; return 1; }; if f b; then V=1; else V=2; fi", "2"),
        ("V=base; while getopts 'l:' o; do V=$OPTARG; done", "base"),
        ("set -- x 'y z'; V=$#$2", "2y z"),
        ("V=$(printf '%03d-%s,' 7 a 8 b)", "007-a,008-b,"),
        ("V=$(echo Qwen/Q-7B | sed 's/\\//-/g')", "Qwen-Q-7B"),
        ("V=$(echo run-tq_simple | sed -E 's/-tq_(simple|mooncake)$//')", "run"),
        ("V=$(echo a/b/c | awk -F/ '{print $2}')", "b"),
        ("V=$(echo -e '1\\n2\\n3' | tail -n 2 | head -1)", "2"),
        ("mapfile -t a <<< 'p q'; V=${a[0]}", "p q"),
        ("O=$IFS; IFS=,; set -- a,b; IFS=$O; s='a b'; set -- $s; V=$#", "2"),
        ("V=$(echo {x,{y,z}} {01..03} {a..c})", "x y z 01 02 03 a b c"),
        ("E=; [ -z \"$GIVEN\" ] && E=5; V=$E", "5"),
        ("if [[ \"$GIVEN\" == \"\" ]]; then V=1; else V=2; fi", "1"),
        ("M=$1; V=full; if [ \"$M\" = lora ]; then V=lora; fi", "full"),
        ("#SBATCH --array=1\na=(x y); V=${a[$SLURM_ARRAY_TASK_ID]}", "y"),
        ("V=$((9223372036854775807 + 1))", None),
        ("x=9; V=$(echo {$x,8})", None),
        ("declare -n r=V; r=2", None),
        ("V=$(echo {1..100000000})", None),
        ("f() { if curl x; then return 0; fi; return 1; }; f && V=1 || V=2", None),
    ],
)  # fmt: skip
def test_the_value_is_what_bash_makes_of_it(follow: Follow, script: str, expected: str | None) -> None:
    assert words(follow(f'{script}\npython train.py "$V"\n')) == ["python", "train.py", expected]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('${A[@]+"${A[@]}"}', ["--a", "1 2", "--b"]),
        ('"${A[@]:0:2}"', ["--a", "1 2"]),
        ('"${E[@]:-}"', [""]),
        ('"${E[@]}" --c 3', ["--c", "3"]),
    ],
)
def test_lists_keep_their_words(follow: Follow, arguments: str, expected: list[str]) -> None:
    followed = follow(f"A=(--a '1 2' --b); E=()\npython train.py {arguments}\n")
    assert words(followed)[2:] == expected


def test_what_the_outside_decides_leaves_both_launches(follow: Follow) -> None:
    followed = follow('if [ -n "$RESUME" ]; then python train.py --r "$RESUME"; else python train.py --n 1; fi\n')
    assert [words(followed, number)[2:] for number in (0, 1)] == [["--r", None], ["--n", "1"]]


def test_an_array_that_a_branch_may_extend_keeps_what_it_surely_has(follow: Follow) -> None:
    script = (
        'A=(a=1 b=2); if [ "$X" = y ]; then A+=(c=3); fi; case $(probe) in one) B=(d=4 e=5) ;; *) B=(d=4 e=6) ;; esac\n'
        'python t.py "${A[@]}" "${B[@]}" f=7\n'
    )
    assert words(follow(script))[2:] == ["a=1", "b=2", None, "d=4", None, "f=7"]


def test_a_script_that_looks_for_an_ascend_card_finds_none(follow: Follow) -> None:
    script = (
        "DEVICE=${DEVICE:-$(python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu)}\n"
        'case "$DEVICE" in gpu) N=8 ;; npu) N=16 ;; *) exit 1 ;; esac\n'
        'A=(n=$N); if [ "$DEVICE" = npu ]; then A+=(share=0.5); fi\n'
        'python t.py "${A[@]}"\n'
    )
    assert words(follow(script))[2:] == ["n=8"]
