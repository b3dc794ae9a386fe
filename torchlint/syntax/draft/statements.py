"""Statements of ``ast`` in the nodes of libcst."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from torchlint.syntax.draft.expressions import (
    annotation,
    dotted,
    elements,
    expression,
    identifier,
    keyword_argument,
    optional,
    parameters,
    positional_argument,
)
from torchlint.syntax.draft.nodes import ASYNCHRONOUS, AUGMENTED, DOT, NoDraftError, make


def _assign(node: ast.Assign) -> cst.Assign:
    targets = tuple(make(cst.AssignTarget, target=expression(target)) for target in node.targets)
    return make(cst.Assign, targets=targets, value=expression(node.value))


def _annotated(node: ast.AnnAssign) -> cst.AnnAssign:
    target, value = expression(node.target), optional(node.value)
    return make(cst.AnnAssign, target=target, annotation=annotation(node.annotation), value=value)


def _augmented(node: ast.AugAssign) -> cst.AugAssign:
    target, value = expression(node.target), expression(node.value)
    return make(cst.AugAssign, target=target, operator=AUGMENTED[node.op.__class__], value=value)


def _raise(node: ast.Raise) -> cst.Raise:
    cause = None if node.cause is None else make(cst.From, item=expression(node.cause))
    return make(cst.Raise, exc=optional(node.exc), cause=cause)


def _delete(node: ast.Delete) -> cst.Del:
    several = len(node.targets) > 1
    target = make(cst.Tuple, elements=elements(node.targets)) if several else expression(node.targets[0])
    return make(cst.Del, target=target)


def _aliases(names: Sequence[ast.alias]) -> tuple[cst.ImportAlias, ...]:
    return tuple(
        make(cst.ImportAlias, name=dotted(alias.name), asname=_as_name(alias.asname and identifier(alias.asname)))
        for alias in names
    )


def _as_name(name: object) -> cst.AsName | None:
    return None if name is None else make(cst.AsName, name=name)


def _import_from(node: ast.ImportFrom) -> cst.ImportFrom:
    return make(
        cst.ImportFrom,
        module=None if node.module is None else dotted(node.module),
        names=make(cst.ImportStar) if node.names[0].name == "*" else _aliases(node.names),
        relative=(DOT,) * node.level,
    )


def _name_items(names: Sequence[str]) -> tuple[cst.NameItem, ...]:
    return tuple(make(cst.NameItem, name=identifier(name)) for name in names)


_SIMPLE: dict[type[ast.stmt], Callable[[Any], cst.BaseSmallStatement]] = {
    ast.Expr: lambda node: make(cst.Expr, value=expression(node.value)),
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: lambda node: make(cst.Return, value=optional(node.value)),
    ast.Raise: _raise,
    ast.Assert: lambda node: make(cst.Assert, test=expression(node.test), msg=optional(node.msg)),
    ast.Delete: _delete,
    ast.Import: lambda node: make(cst.Import, names=_aliases(node.names)),
    ast.ImportFrom: _import_from,
    ast.Global: lambda node: make(cst.Global, names=_name_items(node.names)),
    ast.Nonlocal: lambda node: make(cst.Nonlocal, names=_name_items(node.names)),
    ast.Pass: lambda node: make(cst.Pass),
    ast.Break: lambda node: make(cst.Break),
    ast.Continue: lambda node: make(cst.Continue),
}


def _small(nodes: Sequence[ast.stmt]) -> tuple[cst.BaseSmallStatement, ...]:
    return tuple([_SIMPLE[node.__class__](node) for node in nodes])


class Statements:
    """Makes blocks, for which the lines of the text must be known."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._compound: dict[type[ast.stmt], Callable[[Any], cst.BaseCompoundStatement]] = {
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.ClassDef: self._class,
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
        }

    def block(self, nodes: Sequence[ast.stmt]) -> tuple[cst.BaseStatement, ...]:
        """Return the statements of a block; small ones that share a line share a node."""
        made: list[cst.BaseStatement] = []
        count = len(nodes)
        start = 0
        while start < count:
            first = nodes[start]
            end = start + 1
            if first.__class__ in _SIMPLE:
                while end < count and nodes[end].lineno == nodes[end - 1].end_lineno:
                    end += 1
                made.append(make(cst.SimpleStatementLine, body=_small(nodes[start:end])))
            else:
                compound = self._compound.get(first.__class__)
                if compound is None:
                    raise NoDraftError
                made.append(compound(first))
            start = end
        return tuple(made)

    def _suite(self, nodes: Sequence[ast.stmt]) -> cst.BaseSuite:
        first = nodes[0]
        if first.__class__ in _SIMPLE and self._lines[first.lineno - 1][: first.col_offset].strip():
            return make(cst.SimpleStatementSuite, body=_small(nodes))
        return make(cst.IndentedBlock, body=self.block(nodes))

    def _else(self, nodes: Sequence[ast.stmt]) -> cst.Else | None:
        return make(cst.Else, body=self._suite(nodes)) if nodes else None

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> cst.FunctionDef:
        if getattr(node, "type_params", None):
            raise NoDraftError
        return make(
            cst.FunctionDef,
            name=identifier(node.name),
            params=parameters(node.args),
            body=self._suite(node.body),
            decorators=_decorators(node.decorator_list),
            returns=annotation(node.returns),
            asynchronous=ASYNCHRONOUS if isinstance(node, ast.AsyncFunctionDef) else None,
            type_parameters=None,
        )

    def _class(self, node: ast.ClassDef) -> cst.ClassDef:
        if getattr(node, "type_params", None):
            raise NoDraftError
        return make(
            cst.ClassDef,
            name=identifier(node.name),
            body=self._suite(node.body),
            bases=tuple(map(positional_argument, node.bases)),
            keywords=tuple(map(keyword_argument, node.keywords)),
            decorators=_decorators(node.decorator_list),
            type_parameters=None,
        )

    def _if(self, node: ast.If) -> cst.If:
        orelse: cst.If | cst.Else | None
        inner = node.orelse[0] if len(node.orelse) == 1 else None
        if isinstance(inner, ast.If) and inner.col_offset == node.col_offset:
            orelse = self._if(inner)
        else:
            orelse = self._else(node.orelse)
        return make(cst.If, test=expression(node.test), body=self._suite(node.body), orelse=orelse)

    def _for(self, node: ast.For | ast.AsyncFor) -> cst.For:
        return make(
            cst.For,
            target=expression(node.target),
            iter=expression(node.iter),
            body=self._suite(node.body),
            orelse=self._else(node.orelse),
            asynchronous=ASYNCHRONOUS if isinstance(node, ast.AsyncFor) else None,
        )

    def _while(self, node: ast.While) -> cst.While:
        test, body = expression(node.test), self._suite(node.body)
        return make(cst.While, test=test, body=body, orelse=self._else(node.orelse))

    def _with(self, node: ast.With | ast.AsyncWith) -> cst.With:
        items = tuple(
            make(cst.WithItem, item=expression(item.context_expr), asname=_as_name(optional(item.optional_vars)))
            for item in node.items
        )
        asynchronous = ASYNCHRONOUS if isinstance(node, ast.AsyncWith) else None
        return make(cst.With, items=items, body=self._suite(node.body), asynchronous=asynchronous)

    def _try(self, node: ast.Try) -> cst.Try:
        handlers = tuple(
            make(
                cst.ExceptHandler,
                type=optional(handler.type),
                name=_as_name(handler.name and identifier(handler.name)),
                body=self._suite(handler.body),
            )
            for handler in node.handlers
        )
        return make(
            cst.Try,
            body=self._suite(node.body),
            handlers=handlers,
            orelse=self._else(node.orelse),
            finalbody=make(cst.Finally, body=self._suite(node.finalbody)) if node.finalbody else None,
        )


def _decorators(nodes: Sequence[ast.expr]) -> tuple[cst.Decorator, ...]:
    return tuple(make(cst.Decorator, decorator=expression(node)) for node in nodes)
