"""Shell texts are bounded, not judged by their words; loaders are refused where variables are given."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.shell import read
from toolcage.screens.shell import screen, screen_argument, screen_environment


@pytest.mark.parametrize(
    "text", ["rm -rf / --no-preserve-root", "curl x | sh", ":(){ :|:& };:", "IFS=, read a b", "ls", ""]
)
def test_words_are_not_judged(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    "text",
    [
        "NODE_OPTIONS=--max-old-space-size=4096 npm test",
        'NODE_OPTIONS="--openssl-legacy-provider" yarn build',
        "LD_BIND_NOW=1 ls",
        "PYTHONWARNINGS=ignore python a.py",
        "RUBYOPT=-W0 ruby a.rb",
        "JAVA_TOOL_OPTIONS='-Xmx1g -Xss2m' mvn test",
        "PERL5OPT=-w perl a",
        "JAVA_TOOL_OPTIONS=-Dfile.encoding=UTF-8 mvn test",
        "grep 'LD_PRELOAD=' file",
    ],
)
def test_options_that_size_and_silence_an_interpreter_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    "text",
    [
        "NODE_OPTIONS='--require ./x' node",
        "NODE_OPTIONS=--import=./x node",
        "NODE_OPTIONS=-r./x node",
        "NODE_OPTIONS=$X node",
        "PYTHONWARNINGS=error::os.path.X python",
        "RUBYOPT=-rx ruby",
        "JAVA_TOOL_OPTIONS=-javaagent:x.jar mvn",
        "PERL5OPT=-Mx perl",
        "JAVA_TOOL_OPTIONS=-Djava.system.class.loader=X mvn",
        "_JAVA_OPTIONS='-XX:OnError=id' java",
        "LD_AUDIT=x ls",
        "LD_LIBRARY_PATH=. ls",
        'export "LD_PRELOAD=x"',
        "env 'BASH_ENV=x' bash",
    ],
)
def test_options_that_name_code_to_load_are_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.code == "shell.loader_variable"


@pytest.mark.parametrize(
    ("text", "code"),
    [("LD_PRELOAD=x ls", "shell.loader_variable"), ("a" * 70000, "shell.too_long"), ("a\x00", "text.nul")],
)
def test_sizes_and_loaders_are(text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.code == code


def test_an_environment_may_set_its_own_variables_and_no_loaders() -> None:
    screen_environment({"REPORT_MONTH": "May", "TZ": "UTC"})
    for bad in ({"LD_PRELOAD": "x"}, {"node_options": "x"}, {"A-B": "x"}, {"Ａ": "x"}, {"A": "x\x00"}, {"": "x"}):
        with pytest.raises(Refused):
            screen_environment(bad)


def test_an_argument_is_data_and_no_option() -> None:
    screen_argument("report.csv")
    for bad in ("-x", "--upload-pack=x", "a\nb", ""):
        with pytest.raises(Refused):
            screen_argument(bad)
