import json
import platform
from importlib import metadata

packages = {}
for distribution in metadata.distributions():
    name = distribution.metadata["Name"]
    if name:
        packages[name.lower().replace("_", "-")] = distribution.version
print(json.dumps({"python": platform.python_version(), "packages": packages}))
