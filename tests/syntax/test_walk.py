"""What one walk over a module tells about the places of its nodes."""

from __future__ import annotations

import libcst as cst

from torchlint.syntax.walk import walk

PROGRAM = """
async def train(loader, *, epochs=2):
    async for x in loader:
        step(x, k=[y async for y in x if y > 0 and not z[1:]])
    async with a as b:
        return -b + 1
"""


def test_within_is_what_the_ancestors_say() -> None:
    tree = walk(cst.parse_module(PROGRAM))
    nodes = list(tree.descendants(tree.module))
    assert len(nodes) > 40
    for node in nodes:
        around = {id(node), *(id(ancestor) for ancestor in tree.ancestors(node))}
        assert [tree.within(node, other) for other in nodes] == [id(other) in around for other in nodes]


def test_order_is_that_of_the_document() -> None:
    tree = walk(cst.parse_module(PROGRAM))
    nodes = list(tree.descendants(tree.module))
    assert [tree.order(node) for node in nodes] == sorted(tree.order(node) for node in nodes)
    assert tree.last(tree.module) == tree.order(nodes[-1])
