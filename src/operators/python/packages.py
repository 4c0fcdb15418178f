import json
import os
import platform
import sys
from importlib import metadata

packages = {}
for distribution in metadata.distributions():
    name = distribution.metadata["Name"]
    if name:
        packages[name.lower().replace("_", "-")] = distribution.version
folders = [os.path.realpath(sys.executable)] + [path for path in sys.path if os.path.isdir(path)]
print(json.dumps({"python": platform.python_version(), "packages": packages, "folders": folders}))
