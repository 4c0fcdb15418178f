"""Says whether a program's text compiles in this Python, and which modules it does not have. Nothing of the text is run.

`python -I -B -c PROBE` reads a JSON object with the text (`code`) and the names of modules (`modules`) from standard input, and
prints one with the first fault of the syntax (`syntax`: line and message, or None) and the names that are not found (`missing`).
"""

import importlib.util
import json
import sys
import warnings


def syntax(code):
    try:
        compile(code, "candidate.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return [error.lineno or 1, error.msg]
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return [1, str(error) or type(error).__name__]
    return None


def is_there(name):
    if name in sys.modules or name in sys.builtin_module_names:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


warnings.simplefilter("ignore")
asked = json.load(sys.stdin)
found = {"syntax": syntax(asked["code"]), "missing": [name for name in asked["modules"] if not is_there(name)]}
json.dump(found, sys.stdout)
