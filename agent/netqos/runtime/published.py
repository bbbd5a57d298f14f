"""The contract's two files, `node` and `pods`, as one more backend: planned, written and repaired like any other.

What stands in them is `netqos.engine.netfiles`'s business. They are brought after every other backend, so that a file
never promises what is not in force, and never goes before the enforcement has gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from netqos.backend import BackendContext, Capabilities
from netqos.backend.fileset import FileSet
from netqos.engine.contents import json_object, merge_json_tables
from netqos.engine.netfiles import PodLines, node_file, pods_file
from netqos.model.desired import DesiredState

NAME = "files"


class PublishedFiles(FileSet):
    """`node` and `pods` in the folder of contract 2 (`settings.paths.net`)."""

    def __init__(self, context: BackendContext, folder: PurePath) -> None:
        """Nothing is read or written yet."""
        self.node, self.pods = folder / "node", folder / "pods"
        self._lines = PodLines()
        super().__init__(context, (self.node, self.pods))

    async def probe(self) -> Capabilities:
        """Available everywhere; files for others to read enforce nothing by themselves."""
        return replace(await super().probe(), enforces=frozenset(), limits=False)

    def encode(self, desired: DesiredState) -> Mapping[PurePath, bytes]:
        """The files that should be there."""
        contents = {self.node: node_file(desired), self.pods: pods_file(desired, self._lines)}
        return {path: content for path, content in contents.items() if content is not None}

    def merge(self, path: PurePath, wanted: bytes, found: bytes) -> bytes:
        """A pod that nobody has told of yet keeps its entry; the node file keeps the values that it has."""
        if path == self.pods:
            return merge_json_tables(found, wanted)
        return found if json_object(found) is not None else wanted
