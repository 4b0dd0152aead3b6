"""Count the lines of the package that check inputs and report errors.

A line counts if it belongs to a `raise`, an `except` with its body, an error class, a
call of a validator, the words of a problem or its remedy, or a function that only
checks (its name says so). Run it without arguments for a number, with --rooms for one
number a room, with --root for another state of the package.
"""

import argparse
import ast
import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[1] / "privpgd"
VALIDATORS = (
    "whole_number|as_number|finite_number|one_of|find_columns|make_options|fulfils"
)
CHECKS = re.compile(rf"_?(check|explain|validate|refuse)(_\w+|$)|({VALIDATORS})$")
ERRORS = re.compile(r"_?\w*(Error|Warning)$|.*(failure|problem|_error|_sentence)$")


def called(node: ast.AST) -> str:
    "The name of the function that a node calls; empty if it calls none."
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def counts(node: ast.AST) -> bool:
    "Whether all lines of a node are about errors."
    if isinstance(node, (ast.Raise, ast.ExceptHandler, ast.Assert)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return bool(CHECKS.match(node.name) or ERRORS.match(node.name))
    if isinstance(node, ast.Assign):
        names = {getattr(target, "id", "") for target in node.targets}
        return bool(names & {"problem", "remedy"})
    if isinstance(node, ast.Call):
        return called(node) == "suppress" or bool(
            CHECKS.match(called(node)) or ERRORS.match(called(node))
        )
    return False


def code_lines(text: str) -> set[int]:
    "Numbers of the lines of a module that are neither blank, comment nor docstring."
    lines = {
        i
        for i, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return lines


def error_lines(text: str) -> set[int]:
    "Numbers of the lines of code of a module that are about errors."
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if counts(node):
            lines |= set(range(node.lineno, node.end_lineno + 1))
    return lines & code_lines(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", action="store_true", help="one number a room")
    parser.add_argument("--root", type=pathlib.Path, default=root, help="a package")
    args = parser.parse_args()
    rooms = args.rooms
    total = code = 0
    for path in sorted(args.root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found = len(error_lines(text))
        total += found
        code += len(code_lines(text))
        if rooms and found:
            print(f"{found:5d}  {path.relative_to(args.root).with_suffix('')}")
    print(f"{total} of {code} lines of code check inputs or report errors")


if __name__ == "__main__":
    main()
