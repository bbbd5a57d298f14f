from __future__ import annotations

from tests.node.tutorial import Step, steps

PAGE = """
Text.

```sh
one
```
<!-- expect: a +b -->
<!-- expect: c.*d -->

```text
not run
```

```sh
two
three
```

Look again for some seconds.

```sh
four
```
<!-- expect within 12 s: e -->
<!-- expect: f: g -->
"""


def test_blocks_of_sh_are_steps_with_what_they_must_print() -> None:
    assert steps(PAGE) == [
        Step("one\n", ("a +b", "c.*d")),
        Step("two\nthree\n"),
        Step("four\n", ("e", "f: g"), within_s=12),
    ]


def test_each_expression_is_looked_for_by_itself() -> None:
    step = steps(PAGE)[0]
    assert step.missing("c and d\na   b\n") == []
    assert step.missing("c\nd a b") == ["c.*d"]
