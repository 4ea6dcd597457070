"""The `data` and `shell` images at work in real cages with the default limits, through the whole line."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable

import pytest

from toolcage import PoolTerms, Session, ToolResult
from toolcage.cage.engine import Engine
from toolcage.cage.images import build, build_variant
from toolcage.errors import PolicyError
from toolcage.state import default_state_dir

pytestmark = pytest.mark.docker

ROLE = """
version: 1
role: analyst
tools:
  execute_python:
    allow: [{}]
    sandbox: {image: data}
  run_shell:
    allow: [{}]
"""
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def session(lasting) -> Session:  # type: ignore[no-untyped-def]
    engine = Engine.connect()
    build(["data", "shell"], engine, default_state_dir())
    engine.close()
    shutil.copy(default_state_dir() / "images.lock", lasting.state / "images.lock")
    return lasting.session(ROLE)


@pytest.fixture(scope="module")
def program(session: Session) -> Callable[..., ToolResult]:
    return lambda code, **options: session.call("execute_python", {"code": textwrap.dedent(code)}, **options)


@pytest.fixture(scope="module")
def shell(session: Session) -> Callable[..., ToolResult]:
    return lambda command, **options: session.call("run_shell", {"command": textwrap.dedent(command)}, **options)


def pictures(result: ToolResult) -> dict[str, bytes]:
    return {item.name: item.content for item in result.artifacts}


# --- figures -------------------------------------------------------------------------------------------------------


def test_open_figures_come_out_as_png_artifacts_without_the_program_asking(program) -> None:  # type: ignore[no-untyped-def]
    result = program(
        """
        import matplotlib.pyplot as plt
        plt.plot([1, 2, 3]); plt.title(r"$\\alpha$ and é")
        plt.figure(); plt.bar(["a", "b"], [1, 2])
        plt.show()
        """
    )
    assert result.success, result.stderr
    assert sorted(pictures(result)) == ["figure_1.png", "figure_2.png"]
    assert all(item.content.startswith(PNG) and item.media_type == "image/png" for item in result.artifacts)


def test_a_picture_that_the_program_saved_comes_out_once_and_its_own_files_are_not_overwritten(program) -> None:  # type: ignore[no-untyped-def]
    result = program(
        """
        import matplotlib.pyplot as plt
        plt.plot([1, 2, 3]); plt.savefig("mine.png")
        plt.figure(); plt.plot([3, 2, 1])
        open("figure_1.png", "w").write("mine")
        """
    )
    found = pictures(result)
    assert sorted(found) == ["figure_1.png", "figure_2.png", "mine.png"]
    assert found["figure_1.png"] == b"mine"
    assert found["figure_2.png"] != found["mine.png"]


@pytest.mark.parametrize(
    ("end", "names"), [("sys.exit(0)", ["figure_1.png"]), ("plt.close('all')", []), ("df.plot()", ["figure_1.png"])]
)
def test_figures_come_out_as_they_are_when_the_program_ends(end: str, names: list[str], program) -> None:  # type: ignore[no-untyped-def]
    start = "import sys, pandas as pd, matplotlib.pyplot as plt\ndf = pd.DataFrame({'a': [1, 2]})\n"
    drawing = "" if end.startswith("df") else "plt.plot([1])\n"
    assert sorted(pictures(program(start + drawing + end))) == names


def test_a_figure_that_cannot_be_drawn_does_not_cost_the_result(program) -> None:  # type: ignore[no-untyped-def]
    result = program("import matplotlib.pyplot as plt\nplt.title('$\\\\nonsense{$')\n42")
    assert (result.success, result.data, pictures(result)) == (True, 42, {})
    assert "a figure could not be saved" in result.stderr


def test_the_font_list_is_there_before_the_first_import(program) -> None:  # type: ignore[no-untyped-def]
    result = program(
        """
        import os, matplotlib
        before = os.listdir(matplotlib.get_cachedir())
        import matplotlib.font_manager
        [len(before), before == os.listdir(matplotlib.get_cachedir())]
        """
    )
    assert result.data == [1, True]


# --- tables --------------------------------------------------------------------------------------------------------


def test_tables_survive_csv_parquet_excel_and_feather_in_pandas_polars_and_pyarrow(program) -> None:  # type: ignore[no-untyped-def]
    result = program(
        """
        import numpy as np, pandas as pd, polars as pl, pyarrow.parquet as pq
        import pandas.testing as same
        df = pd.DataFrame({"id": range(500), "name": [f"é{i}" for i in range(500)], "x": np.arange(500) / 7,
                           "t": pd.date_range("2024-01-01", periods=500, freq="h")})
        df.to_csv("a.csv", index=False)
        same.assert_frame_equal(pd.read_csv("a.csv", parse_dates=["t"]), df, check_dtype=False)
        df.to_parquet("a.parquet"); same.assert_frame_equal(pd.read_parquet("a.parquet"), df)
        df.to_feather("a.feather"); same.assert_frame_equal(pd.read_feather("a.feather"), df)
        df.to_excel("a.xlsx", index=False); same.assert_frame_equal(pd.read_excel("a.xlsx"), df, check_dtype=False)
        frame = pl.read_parquet("a.parquet")
        frame.write_parquet("b.parquet"); frame.write_csv("b.csv")
        assert pq.read_table("b.parquet").num_rows == pl.read_csv("b.csv").height == 500
        assert pl.read_excel("a.xlsx", engine="openpyxl").height == 500
        assert pl.scan_parquet("b.parquet").filter(pl.col("id") < 5).collect().height == 5
        same.assert_frame_equal(frame.to_pandas(), df, check_dtype=False)
        str(pd.Timestamp("2024-06-01", tz="Europe/Berlin"))
        """
    )
    assert (result.success, result.data) == (True, "2024-06-01 00:00:00+02:00"), result.stderr
    assert {item.name for item in result.artifacts} >= {"a.csv", "a.parquet", "a.xlsx", "b.parquet"}


def test_an_attached_table_is_read_and_half_a_million_rows_fit_the_default_memory(program) -> None:  # type: ignore[no-untyped-def]
    lines = "g,x\n" + "".join(f"{i % 3},{i}\n" for i in range(1000))
    result = program(
        """
        import numpy as np, pandas as pd, polars as pl, matplotlib.pyplot as plt
        small = pd.read_csv("in.csv").groupby("g").x.sum().to_dict()
        big = pd.DataFrame(np.random.default_rng(1).random((500_000, 6)), columns=list("abcdef"))
        big["g"] = (big.a * 10).astype(int)
        plt.scatter(big.a[:500], big.b[:500]); big.groupby("g").mean().to_parquet("out.parquet")
        [int(small[0]), pl.read_parquet("out.parquet").height]
        """,
        files={"in.csv": lines.encode()},
    )
    assert (result.success, result.data) == (True, [166833, 10]), result.stderr


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_comes_out_as_text_and_as_html_that_a_page_can_show(library: str, program) -> None:  # type: ignore[no-untyped-def]
    result = program(f"import {library}\n{library}.DataFrame({{'a': [1, 2], 'b': ['<script>alert(1)</script>', 'y']}})")
    assert "alert(1)" in result.data
    assert list(pictures(result)) == ["value.html"]
    assert b"<table" in pictures(result)["value.html"]
    page = result.to_html(rich=True)
    assert "<table>" in page
    assert "<script" not in page
    assert "<style" not in page
    assert "<table" not in result.to_html()


def test_a_figure_and_a_picture_as_the_last_value_come_out_as_png(program) -> None:  # type: ignore[no-untyped-def]
    code = """
        class Picture:
            def _repr_png_(self):
                drawn = io.BytesIO(); plt.figure().savefig(drawn); plt.close("all")
                return drawn.getvalue()
        import io, matplotlib.pyplot as plt
        Picture()
        """
    result = program(code)
    assert {name: content[:8] for name, content in pictures(result).items()} == {"value.png": PNG}
    assert 'src="data:image/png;base64,iVBOR' in result.to_html(rich=True)


def test_a_value_whose_representation_hangs_is_the_calls_own_timeout(program, shell) -> None:  # type: ignore[no-untyped-def]
    result = program("class Hangs:\n    def _repr_html_(self):\n        while True: pass\nprint('so far')\nHangs()")
    assert (result.status, result.stdout) == ("timeout", "so far\n")
    assert program("1").data == 1


def test_a_warm_cage_has_the_large_libraries_imported_and_they_work_after_the_fork(installation) -> None:  # type: ignore[no-untyped-def]
    session = installation.session(ROLE, pool=PoolTerms(min_idle=1))
    code = """
        import sys
        ahead = {"numpy", "pandas"} <= set(sys.modules)
        import io, os, numpy as np, pandas as pd, polars as pl
        table = pd.DataFrame({"a": np.arange(1000), "b": list("xy") * 500})
        held = io.BytesIO(); table.to_parquet(held); held.seek(0)
        again = pd.read_parquet(held).groupby("b").a.sum().to_dict()
        [ahead, again, pl.DataFrame({"a": [1, 2]}).select(pl.col("a").sum()).item(), pl.thread_pool_size(),
         float(np.linalg.det(np.eye(300))), np.random.default_rng().random() != np.random.default_rng().random()]
        """
    first, second = (session.call("execute_python", {"code": textwrap.dedent(code)}) for _ in range(2))
    for result in (first, second):
        assert result.status == "ok", result.stderr
        assert result.data == [True, {"x": 249500, "y": 250000}, 3, 1, 1.0, True]
    state = "import numpy as np; [float(np.random.random()) for _ in range(2)]"
    one, two = (session.call("execute_python", {"code": state}).data for _ in range(2))
    assert one != two  # each cage imports for itself: no two share the state of a generator


def test_linear_algebra_stays_within_its_threads(program) -> None:  # type: ignore[no-untyped-def]
    result = program(
        """
        import os, numpy as np, pyarrow as pa
        a = np.random.default_rng(1).random((400, 400)); np.linalg.svd(a @ a)
        [len(os.listdir("/proc/self/task")), pa.cpu_count()]
        """
    )
    assert result.data[1] == 1
    assert result.data[0] < 16


# --- the shell -----------------------------------------------------------------------------------------------------


def test_a_command_gets_its_output_exit_code_and_files_through_the_line(shell) -> None:  # type: ignore[no-untyped-def]
    result = shell(
        r"""
        sort in.txt > out.txt
        awk '{s += $2} END {print s, strftime("%Y", 0, 1), gensub(/a/, "b", 1, "aa")}' out.txt
        echo '{"a": [1, 2]}' | jq -c '.a | add'
        diff <(echo a) <(echo b) | grep -c '^[<>]'
        find . -name '*.txt' | xargs wc -l | tail -n 1
        tar czf all.tgz out.txt && tar tzf all.tgz && zcat all.tgz | wc -c
        echo é | sed 's/é/e/' | tr a-z A-Z; date -u -d @0 +%F; which awk; echo $((6 * 7)) >&2
        (exit 3)
        """,
        files={"in.txt": b"b 2\na 1\n"},
    )
    assert " ".join(result.stdout.split()) == "3 1970 ba 3 2 4 total out.txt 10240 E 1970-01-01 /usr/bin/awk"
    assert (result.stderr.strip(), result.exit_code, result.status) == ("42", 3, "tool_error")
    assert pictures(result)["out.txt"] == b"a 1\nb 2\n"


@pytest.mark.parametrize(
    ("command", "status", "exit_code"),
    [
        ("true", "ok", 0), ("false", "tool_error", 1), ("exec false", "tool_error", 1), ("if", "tool_error", 2),
        ("kill -TERM $$", "tool_error", -15), ("trap 'exit 5' TERM; kill $$", "tool_error", 5),
        ("nope", "tool_error", 127),
    ],
)  # fmt: skip
def test_exit_codes_and_signals_of_the_shell_are_the_calls(command: str, status: str, exit_code: int, shell) -> None:  # type: ignore[no-untyped-def]
    result = shell(command)
    assert (result.status, result.exit_code) == (status, exit_code)


def test_output_streams_while_the_command_runs(shell, tmp_path) -> None:  # type: ignore[no-untyped-def]
    seen: list[tuple[str, bytes]] = []
    result = shell("echo one; sleep 0.3; echo two >&2", on_output=lambda stream, chunk: seen.append((stream, chunk)))
    assert result.success
    assert [stream for stream, _ in seen] == ["stdout", "stderr"]


@pytest.mark.threat("P22")
@pytest.mark.parametrize(
    "command",
    [
        "cp /usr/bin/true mine && ./mine",
        "printf '#!/usr/bin/bash\\necho run' > x && chmod +x x && ./x",
        "apt-get update", "pip install x", "dpkg -l", "python3 -m pip", "perl -e 1", "su", "mount -t tmpfs x /tmp",
        "echo x > /usr/bin/y", "echo > /dev/tcp/127.0.0.1/1", "touch /etc/passwd", "unshare -U true",
        "chroot /", "nc -h",
    ],
)  # fmt: skip
def test_nothing_can_be_installed_executed_from_the_workspace_or_reached(command: str, shell) -> None:  # type: ignore[no-untyped-def]
    result = shell(command)
    assert result.status == "tool_error"
    assert result.exit_code not in (0, None)


@pytest.mark.parametrize("isolation", ["container", "namespace"])
def test_programs_that_would_carry_access_lists_over_change_files_and_complain_about_nothing(
    isolation: str, installation
) -> None:  # type: ignore[no-untyped-def]
    weaker = "" if isolation == "container" else ", accept_weaker: the same in a test"
    grant = f"allow: [{{}}], sandbox: {{isolation: {isolation}}}{weaker}"
    session = installation.session(f"version: 1\nrole: shell\ntools: {{run_shell: {{{grant}}}}}\n")
    command = "echo a > f; chmod 640 f; sed -i s/a/b/ f; cp -p f g; cp -a f h; mv h i; tar c f | tar xp -C /tmp"
    result = session.call("run_shell", {"command": f"{command}; stat -c %a f g i /tmp/f; cat g"})
    assert (result.stderr, result.exit_code) == ("", 0)
    assert result.stdout.split() == ["640", "640", "640", "640", "b"]


def test_no_login_file_is_read_and_nothing_of_the_host_is_in_the_environment(shell) -> None:  # type: ignore[no-untyped-def]
    result = shell("compgen -e | sort; shopt -q login_shell || echo none; ls -A ~; compgen -G '/etc/[bp][ar][so][hf]*'")
    assert result.stdout.split() == ["HOME", "LANG", "PATH", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "none"]


def test_what_runs_in_the_background_ends_with_the_call(shell) -> None:  # type: ignore[no-untyped-def]
    result = shell("setsid sleep 1000 & sleep 1000 & disown -a; echo started")
    assert (result.success, result.stdout) == (True, "started\n")


def test_a_fork_bomb_meets_its_limit_and_the_next_command_works(shell) -> None:  # type: ignore[no-untyped-def]
    shell(":(){ :|:& };:; sleep 1")
    assert shell("echo fine").stdout == "fine\n"


# --- variants ------------------------------------------------------------------------------------------------------


def test_a_policy_can_name_a_variant(installation) -> None:  # type: ignore[no-untyped-def]
    engine = Engine.connect()
    build_variant("python", "templates", ["jinja2==3.1.6"], engine, installation.state)
    engine.close()
    session = installation.session(ROLE.replace("image: data", "image: templates"))
    result = session.call("execute_python", {"code": "import jinja2\njinja2.Template('{{ 6 * 7 }}').render()"})
    assert result.data == "42"


def test_a_policy_that_names_an_image_nobody_built_is_refused_at_start(installation) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PolicyError, match="there is no image `nowhere`"):
        installation.session(ROLE.replace("image: data", "image: nowhere"))
    assert installation.containers() == []
