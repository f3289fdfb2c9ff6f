#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `brimful run` promises: it becomes COMMAND, and nothing changes but COMMAND's malloc.

The launcher is the thing under test, not the allocator, so any preloadable library will do: the
release library if it is built, else libm, which is on every machine and does nothing by itself.
Every test starts the real launcher in a fresh process.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "brimful"
RELEASE = ROOT / "build" / "release" / "libbrimful.so"
BUILT = RELEASE.exists()


def stand_in() -> Path:
    """A library that every Linux machine has and that any program can carry."""
    for folder in ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64"):
        path = Path(folder) / "libm.so.6"
        if path.exists():
            return path.resolve()
    raise unittest.SkipTest("neither the release library nor libm.so.6 is here to preload")


LIBRARY = RELEASE if BUILT else stand_in()


def clean_environment(**extra: str) -> dict[str, str]:
    """The caller's environment without what the launcher itself sets."""
    kept = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "BRIMFUL_CONF")}
    return kept | extra


def launch(
    *arguments: str | bytes,
    launcher: Path | str = LAUNCHER,
    cwd: Path | str | None = None,
    env: dict[str, str] | None = None,
    stdin: int | None = subprocess.DEVNULL,
) -> subprocess.CompletedProcess[str]:
    """Run the launcher to its end and return what it said."""
    return subprocess.run(
        [str(launcher), *arguments],
        cwd=cwd,
        env=clean_environment() if env is None else env,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def run(*command: str, **options: object) -> subprocess.CompletedProcess[str]:
    """`brimful run --lib LIBRARY -- COMMAND`."""
    return launch("run", "--lib", str(LIBRARY), "--", *command, **options)  # type: ignore[arg-type]


class TemporaryFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="brimful-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def script(self, name: str, text: str, mode: int = 0o755) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path


class ExitCodes(TemporaryFolder):
    def test_the_exit_code_is_the_childs(self) -> None:
        for code in (0, 1, 42, 125, 126, 127, 255):
            with self.subTest(code=code):
                self.assertEqual(run("sh", "-c", f"exit {code}").returncode, code)

    def test_a_signal_that_kills_the_child_is_seen_by_our_parent(self) -> None:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGPIPE):
            with self.subTest(signal=number.name):
                self.assertEqual(run("sh", "-c", f"kill -{number:d} $$").returncode, -number)

    def test_127_when_the_command_does_not_exist(self) -> None:
        for command in ("no-such-command-xyzzy", "/no/such/file", "./nope", "/etc/passwd/x", ""):
            with self.subTest(command=command):
                result = run(command)
                self.assertEqual(result.returncode, 127)
                self.assertIn("not found", result.stderr)

    def test_126_when_the_command_is_not_executable(self) -> None:
        plain = self.script("plain", "#!/bin/sh\n", mode=0o644)
        for command in (str(plain), str(self.folder)):
            with self.subTest(command=command):
                result = run(command)
                self.assertEqual(result.returncode, 126)
                self.assertIn(command, result.stderr)

    def test_126_when_path_offers_only_a_file_that_is_not_executable(self) -> None:
        self.script("plain", "#!/bin/sh\n", mode=0o644)
        environment = clean_environment(PATH=f"{self.folder}:/usr/bin:/bin")
        self.assertEqual(run("plain", env=environment).returncode, 126)

    def test_a_later_executable_on_path_wins_over_an_earlier_plain_file(self) -> None:
        self.script("true", "", mode=0o644)
        environment = clean_environment(PATH=f"{self.folder}:/usr/bin:/bin")
        self.assertEqual(run("true", env=environment).returncode, 0)

    def test_127_when_the_interpreter_of_a_script_is_missing(self) -> None:
        script = self.script("orphan", "#!/no/such/interpreter\n")
        result = run(str(script))
        self.assertEqual(result.returncode, 127)
        self.assertIn("interpreter", result.stderr)

    def test_a_script_without_a_first_line_goes_to_the_shell_as_execvp_does(self) -> None:
        script = self.script("bare", 'exit "$1"\n')
        self.assertEqual(run(str(script), "9").returncode, 9)

    def test_125_when_the_library_is_missing(self) -> None:
        result = launch("run", "--lib", "/no/such/lib.so", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("/no/such/lib.so", result.stderr)

    def test_125_when_the_library_is_not_a_library(self) -> None:
        text = self.script("lib.so", "not ELF")
        result = launch("run", "--lib", str(text), "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("not a shared library", result.stderr)

    def test_125_and_make_lib_is_named_when_this_checkout_is_not_built(self) -> None:
        shutil.copy(LAUNCHER, self.folder / "brimful")
        shutil.copytree(ROOT / "cli", self.folder / "cli")
        result = launch("run", "--", "true", launcher=self.folder / "brimful")
        self.assertEqual(result.returncode, 125)
        self.assertIn("make lib", result.stderr)

    def test_125_when_the_command_line_is_wrong(self) -> None:
        for arguments in (
            ["--lib"],
            ["--conf"],
            ["--nonsense", "--", "true"],
            ["-x", "true"],
            ["--"],
            [],
        ):
            with self.subTest(arguments=arguments):
                result = launch("run", *arguments)
                self.assertEqual(result.returncode, 125)
                self.assertIn("usage: brimful run", result.stderr)


class TheChildIsUnchanged(TemporaryFolder):
    def test_arguments_arrive_byte_for_byte(self) -> None:
        arguments = ["a b", "", "  ", "--conf", "--", "-x", "$HOME", '"', "'", "\\"]
        arguments += ["new\nline", "ü", "*"]
        result = run("printf", "[%s]", *arguments)
        self.assertEqual(result.stdout, "".join(f"[{argument}]" for argument in arguments))

    def test_an_argument_that_is_not_utf8_arrives_byte_for_byte(self) -> None:
        out = subprocess.run(
            [LAUNCHER, b"run", b"--lib", bytes(LIBRARY), b"--", b"printf", b"%s", b"\xff\xfe"],
            env=clean_environment(),
            capture_output=True,
            timeout=60,
        )
        self.assertEqual(out.stdout, b"\xff\xfe")

    def test_options_of_the_command_are_not_ours_even_without_two_dashes(self) -> None:
        result = launch("run", "--lib", str(LIBRARY), "printf", "%s,", "--conf", "--help")
        self.assertEqual(result.stdout, "--conf,--help,")

    def test_standard_input_output_and_error_are_passed_through(self) -> None:
        out = subprocess.run(
            [LAUNCHER, "run", "--lib", LIBRARY, "--", "sh", "-c", "cat; echo err >&2"],
            input="through",
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((out.stdout, out.stderr), ("through", "err\n"))

    def test_it_runs_in_the_callers_folder(self) -> None:
        said = run("pwd", "-P", cwd=self.folder).stdout.strip()
        self.assertEqual(said, str(self.folder.resolve()))

    def test_the_process_is_replaced_not_wrapped(self) -> None:
        command = [str(LAUNCHER), "run", "--lib", str(LIBRARY), "--", "sh", "-c", "echo $$"]
        with subprocess.Popen(
            command, env=clean_environment(), stdout=subprocess.PIPE, text=True
        ) as process:
            said, _ = process.communicate(timeout=60)
        self.assertEqual(int(said), process.pid)

    def test_a_signal_sent_to_us_reaches_the_command(self) -> None:
        command = [str(LAUNCHER), "run", "--lib", str(LIBRARY), "--", "sh", "-c"]
        command += ["trap 'exit 33' TERM; echo ready; while :; do sleep 0.05; done"]
        with subprocess.Popen(
            command, env=clean_environment(), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.terminate()
            self.assertEqual(process.wait(timeout=60), 33)

    def test_sigpipe_ends_the_command_silently_as_it_does_without_us(self) -> None:
        out = subprocess.run(
            ["bash", "-c", '"$0" run --lib "$1" -- yes | head -n 1; echo "${PIPESTATUS[0]}"']
            + [str(LAUNCHER), str(LIBRARY)],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(out.stdout, f"y\n{128 + signal.SIGPIPE}\n")
        self.assertEqual(out.stderr, "")

    def test_no_signal_is_ignored_that_was_not_ignored_before(self) -> None:
        def ignored(output: str) -> int:
            lines = [line for line in output.splitlines() if line.startswith("SigIgn:")]
            return int(lines[0].split()[1], 16)

        plain = subprocess.run(
            ["cat", "/proc/self/status"], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(ignored(run("cat", "/proc/self/status").stdout), ignored(plain.stdout))

    def test_the_environment_gains_the_preload_and_nothing_else(self) -> None:
        result = run("env", env={"PATH": "/usr/bin:/bin", "KEEP": "it"})
        self.assertEqual(
            sorted(result.stdout.split()),
            sorted(["PATH=/usr/bin:/bin", "KEEP=it", f"LD_PRELOAD={LIBRARY}"]),
        )

    def test_the_callers_own_ctype_stays(self) -> None:
        result = run("env", env={"PATH": "/usr/bin:/bin", "LC_CTYPE": "C.UTF-8"})
        self.assertIn("LC_CTYPE=C.UTF-8", result.stdout.split())


class ThePreload(TemporaryFolder):
    def test_the_library_is_really_mapped(self) -> None:
        self.assertIn(str(LIBRARY.resolve()), run("cat", "/proc/self/maps").stdout)

    def test_a_relative_library_path_becomes_absolute(self) -> None:
        link = self.folder / "own.so"
        link.symlink_to(LIBRARY)
        result = launch("run", "--lib", "own.so", "--", "printenv", "LD_PRELOAD", cwd=self.folder)
        self.assertEqual(result.stdout.strip(), str(link))

    def test_an_existing_preload_is_kept_behind_ours(self) -> None:
        other = str(stand_in())
        environment = clean_environment(LD_PRELOAD=other)
        ours = self.folder / "ours.so"
        ours.symlink_to(LIBRARY)
        result = launch("run", "--lib", str(ours), "--", "printenv", "LD_PRELOAD", env=environment)
        self.assertEqual(result.stdout.strip(), f"{ours}:{other}")

    def test_running_inside_itself_names_the_library_once(self) -> None:
        result = run(str(LAUNCHER), "run", "--lib", str(LIBRARY), "--", "printenv", "LD_PRELOAD")
        self.assertEqual(result.stdout.strip(), str(LIBRARY))

    def test_a_library_path_with_a_space_or_colon_works_through_a_link(self) -> None:
        for name in ("my projects", "a:b"):
            with self.subTest(name=name):
                place = self.folder / name
                place.mkdir()
                shutil.copy(LIBRARY, place / "libbrimful.so")
                environment = clean_environment(XDG_CACHE_HOME=str(self.folder / "cache"))
                result = launch(
                    "run", "--lib", str(place / "libbrimful.so"), "--", "cat", "/proc/self/maps",
                    env=environment,
                )  # fmt: skip
                self.assertEqual(result.stderr, "")
                self.assertIn(str(place / "libbrimful.so"), result.stdout)

    def with_a_space(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """The library in a path with a space and an umlaut, asked for its maps."""
        place = self.folder / "my Bücher"
        place.mkdir(exist_ok=True)
        shutil.copy(LIBRARY, place / "lib.so")
        return launch(
            "run", "--lib", str(place / "lib.so"), "--", "cat", "/proc/self/maps",
            env=clean_environment(**variables),
        )  # fmt: skip

    def test_without_a_cache_folder_the_link_is_in_the_temporary_one(self) -> None:
        plain = self.folder / "tmp"
        plain.mkdir()
        for home in ("/proc/nonexistent", f"{self.folder}/my home", "relative"):
            with self.subTest(home=home):
                variables = {"HOME": home, "XDG_CACHE_HOME": "", "TMPDIR": str(plain)}
                result = self.with_a_space(**variables)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("my Bücher/lib.so", result.stdout)
                self.assertEqual([p.name for p in plain.iterdir()], [f"brimful-{os.getuid()}"])

    def test_125_when_a_path_cannot_be_preloaded_at_all(self) -> None:
        place = str(self.folder / "my projects")
        result = self.with_a_space(XDG_CACHE_HOME=place, TMPDIR=place)
        self.assertEqual(result.returncode, 125)
        self.assertIn("--lib", result.stderr)

    def test_a_folder_that_others_may_write_to_gets_no_link(self) -> None:
        # Whoever may write there could name another library, and the program would run it.
        for mode in (0o777, 0o770):
            with self.subTest(mode=oct(mode)):
                cache = self.folder / f"cache{mode:o}"
                (cache / "brimful").mkdir(parents=True)
                (cache / "brimful").chmod(mode)
                result = self.with_a_space(XDG_CACHE_HOME=str(cache), TMPDIR="/proc/nonexistent")
                self.assertEqual(result.returncode, 125)
                self.assertIn("others may write there", result.stderr)


class TheSettings(TemporaryFolder):
    def conf(self, *arguments: str, inherited: str | None = None) -> str:
        environment = clean_environment()
        if inherited is not None:
            environment["BRIMFUL_CONF"] = inherited
        result = launch(
            "run", "--lib", str(LIBRARY), *arguments, "--", "printenv", "BRIMFUL_CONF",
            env=environment,
        )  # fmt: skip
        return result.stdout.rstrip("\n")

    def test_conf_reaches_the_command(self) -> None:
        self.assertEqual(self.conf("--conf", "front_end:thread"), "front_end:thread")
        self.assertEqual(self.conf("--conf=front_end:thread"), "front_end:thread")

    def test_guards_are_an_option_of_the_library(self) -> None:
        for word, number in (("all", "1"), ("off", "0"), ("500", "500")):
            self.assertEqual(self.conf("--guards", word), f"guards:{number}")
        for word in ("some", "-1", ""):
            wrong = launch("run", f"--guards={word}", "--", "true")
            self.assertEqual(wrong.returncode, 125)
            self.assertIn("--guards", wrong.stderr)

    def test_several_confs_are_joined_in_order(self) -> None:
        two = ["--conf", "front_end:thread,", "--conf", "tier:hardened"]
        self.assertEqual(self.conf(*two), "front_end:thread,tier:hardened")

    def test_inherited_settings_come_first_so_that_the_command_line_wins(self) -> None:
        joined = self.conf("--conf", "tier:hardened", inherited="tier:default")
        self.assertEqual(joined, "tier:default,tier:hardened")

    def test_conf_wins_over_the_variable_of_the_same_option_and_no_other(self) -> None:
        environment = clean_environment(BRIMFUL_TIER="default", BRIMFUL_VERBOSE="0")
        command = ["run", "--lib", str(LIBRARY), "--conf", "tier:hardened", "--", "env"]
        lines = launch(*command, env=environment).stdout.split()
        self.assertIn("BRIMFUL_CONF=tier:hardened", lines)
        self.assertIn("BRIMFUL_VERBOSE=0", lines)
        self.assertNotIn("BRIMFUL_TIER=default", lines)

    def test_inherited_settings_stay_without_conf(self) -> None:
        self.assertEqual(self.conf(inherited="tier:default"), "tier:default")

    @unittest.skipUnless(BUILT, "build/release/libbrimful.so is not built (make lib)")
    def test_the_library_obeys_conf(self) -> None:
        for mode in ("percpu", "thread"):
            with self.subTest(front_end=mode):
                result = launch("run", "--conf", f"front_end:{mode},verbose:1", "--", "ls", "/")
                self.assertEqual(result.returncode, 0)
                self.assertRegex(result.stderr, r"^brimful: .*front end (percpu|thread)")
                if mode == "thread":
                    self.assertIn("front end thread", result.stderr)

    @unittest.skipUnless(BUILT, "build/release/libbrimful.so is not built (make lib)")
    def test_of_two_mentions_of_a_key_the_later_wins(self) -> None:
        environment = clean_environment(BRIMFUL_CONF="verbose:1,front_end:percpu")
        result = launch("run", "--conf", "front_end:thread", "--", "ls", "/", env=environment)
        self.assertIn("front end thread", result.stderr)


class AnyFolder(TemporaryFolder):
    @unittest.skipUnless(BUILT, "build/release/libbrimful.so is not built (make lib)")
    def test_the_own_library_is_found_from_any_folder(self) -> None:
        for folder in ("/", "/usr/bin", str(self.folder)):
            with self.subTest(folder=folder):
                result = launch("run", "--", "cat", "/proc/self/maps", cwd=folder)
                self.assertIn("libbrimful.so", result.stdout)

    def test_it_works_through_a_chain_of_links_and_from_path(self) -> None:
        first, second = self.folder / "first", self.folder / "bin" / "brimful"
        second.parent.mkdir()
        first.symlink_to(LAUNCHER)
        second.symlink_to(Path("..") / "first")
        path = f"{second.parent}:{os.environ.get('PATH', os.defpath)}"
        out = subprocess.run(
            ["brimful", "run", "--lib", str(LIBRARY), "--", "sh", "-c", "exit 3"],
            cwd="/",
            env=clean_environment(PATH=path),
            timeout=60,
        )
        self.assertEqual(out.returncode, 3)

    def test_it_works_when_called_by_a_relative_path(self) -> None:
        relative = os.path.relpath(LAUNCHER, self.folder)
        result = launch(
            "run", "--lib", str(LIBRARY), "--", "true", launcher=relative, cwd=self.folder
        )
        self.assertEqual(result.returncode, 0, result.stderr)


class Warnings(TemporaryFolder):
    def compiled(self, *flags: str) -> Path:
        source = self.folder / "program.c"
        source.write_text("int main(void) { return 5; }\n")
        program = self.folder / "program"
        try:
            subprocess.run(
                ["cc", *flags, "-o", program, source], check=True, capture_output=True, timeout=60
            )
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no compiler for a program with {flags}: {error}")
        return program

    def test_a_static_program_runs_with_a_warning(self) -> None:
        for flags in (["-static"], ["-static-pie"]):
            with self.subTest(flags=flags):
                result = run(str(self.compiled(*flags)))
                self.assertEqual(result.returncode, 5)
                self.assertIn("statically linked", result.stderr)

    def test_a_dynamic_program_runs_without_a_warning(self) -> None:
        result = run(str(self.compiled()))
        self.assertEqual((result.returncode, result.stderr), (5, ""))

    def test_a_script_is_judged_by_its_interpreter(self) -> None:
        program = self.compiled("-static")
        result = run(str(self.script("script", f"#!{program}\n")))
        self.assertEqual(result.returncode, 5)
        self.assertIn("statically linked", result.stderr)

    def test_a_setuid_program_of_another_user_runs_with_a_warning(self) -> None:
        program = self.compiled()
        if os.getuid() == 0:
            os.chown(program, 65534, 65534)
        else:
            found = shutil.which("passwd") or "/usr/bin/passwd"
            if not os.path.exists(found) or not os.stat(found).st_mode & stat.S_ISUID:
                self.skipTest("not root, and no set-user-ID program is here to try")
            self.assertIn("set-user-ID", run(found, "--help").stderr)
            return
        program.chmod(0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("the temporary folder is on a nosuid file system")
        result = run(str(program))
        self.assertEqual(result.returncode, 5)
        self.assertIn("set-user-ID", result.stderr)


class TheRestOfTheCommand(TemporaryFolder):
    def test_help_exists_for_every_command(self) -> None:
        commands: list[list[str]] = [[], ["run"], ["bench"]]
        commands += [["bench", name] for name in ("compare", "report", "league", "study")]
        for command in commands:
            with self.subTest(command=command):
                result = launch(*command, "--help")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, "(?i)usage: ")

    def test_help_after_the_command_is_the_commands_own(self) -> None:
        self.assertEqual(run("printf", "%s", "--help").stdout, "--help")

    def test_both_parsers_of_run_know_the_same_options(self) -> None:
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'cli')!r})\n"
            "import typer; from brimful import app, run\n"
            "command = typer.main.get_command(app.app).commands['run']\n"
            "typer_options = {o for p in command.params for o in p.opts if o.startswith('--')}\n"
            "assert typer_options == set(run.OPTIONS), (typer_options, run.OPTIONS)\n"
        )
        out = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(out.returncode, 0, out.stderr)

    def test_the_version_is_shown(self) -> None:
        result = launch("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^brimful \d+\.\d+\.\d+\n")

    def test_an_unknown_command_is_a_usage_error(self) -> None:
        self.assertEqual(launch("frobnicate").returncode, 2)

    def test_run_costs_at_most_60_ms_more_than_python_itself(self) -> None:
        # Processor time, which a busy machine lengthens less than it does the time by the clock.
        def cheapest(command: list[str]) -> float:
            times = []
            for _ in range(10):
                process = subprocess.Popen(command, env=clean_environment())
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                times.append(usage.ru_utime + usage.ru_stime)
            return min(times)

        python = cheapest([sys.executable, "-I", "-c", ""])
        ours = cheapest([str(LAUNCHER), "run", "--lib", str(LIBRARY), "--", "/bin/true"])
        self.assertLess(ours - python, 0.060)


if __name__ == "__main__":
    print(f"library under the launcher: {LIBRARY}", file=sys.stderr)
    unittest.main()
