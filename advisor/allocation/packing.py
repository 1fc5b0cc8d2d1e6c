"""Whether replicas find room in nodes."""

from __future__ import annotations

from collections.abc import Sequence


def unpacked(sizes: Sequence[int], accelerators: int, per_node: int) -> int:
    """How many replicas of these sizes find no node with room, when the largest are placed first,
    each into the first node that has some; wider ones than a node take nodes that are empty.

    0 is a proof that all fit. More is none that they do not, but where sizes divide each other and
    the node, as powers of two do: then nothing packs better.
    """
    nodes = [per_node] * (accelerators // per_node)
    if accelerators % per_node:
        nodes.append(accelerators % per_node)
    left_out = 0
    for size in sorted(sizes, reverse=True):
        wide = size
        while wide > per_node and per_node in nodes:
            nodes.remove(per_node)
            wide -= per_node
        place = next((i for i, free in enumerate(nodes) if free >= wide), None)
        if place is None:
            left_out += 1
        else:
            nodes[place] -= wide
    return left_out
