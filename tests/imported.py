"""What processes of the stories need: imported once, by the process that they are forked from."""

import gc
import importlib
import pkgutil
from importlib.metadata import entry_points

import signoff

for _module in pkgutil.walk_packages(signoff.__path__, "signoff."):
    if not _module.name.endswith("__main__") and not _module.name.startswith(("signoff.testing", "signoff.bench")):
        importlib.import_module(_module.name)
for _point in entry_points(group="signoff.adapters"):
    _point.load()
gc.freeze()
