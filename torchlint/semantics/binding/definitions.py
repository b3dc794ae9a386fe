"""Functions and classes that the file defines, and what their classes inherit and hold."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import Binding, BindingKind, Scopes
from torchlint.semantics.tables.loaders import LOADER_KINDS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, is_none, literal, method_call
from torchlint.syntax.walk import Tree

_DEFINITIONS: frozenset[type[cst.CSTNode]] = frozenset((cst.ClassDef, cst.FunctionDef))
_PROPERTIES = ("builtins.property", "functools.cached_property")
_TRAINERS = ("transformers.", "trl.")
_MODULE_CLASSES = ("torch.nn.", "lightning.pytorch.LightningModule", "timm.models.", "torchvision.models.")


class AttributeBinding(NamedTuple):
    """One assignment to an attribute of ``self`` (or in the body of the class)."""

    node: cst.CSTNode
    value: cst.BaseExpression | None
    path: tuple[int, ...]
    method: cst.FunctionDef | None


class Definitions:
    """Looks definitions up; everything is computed when first asked for."""

    def __init__(self, tree: Tree, scopes: Scopes, names: Names) -> None:
        self._tree = tree
        self._scopes = scopes
        self._names = names
        self._ancestries: dict[int, tuple[str, ...]] = {}
        self._named: dict[int, cst.FunctionDef | cst.ClassDef | None] = {}
        self._attributes: dict[int, dict[str, list[AttributeBinding]]] = {}
        self._yielded: dict[int, list[cst.Yield]] = {}
        self._results: dict[int, list[cst.BaseExpression]] | None = None
        self._buffers: dict[int, set[str]] | None = None
        self._methods: dict[int, dict[str, cst.FunctionDef]] = {}
        self._kinds: dict[int, Kind] = {}
        self._receivers: dict[int, cst.ClassDef | None] = {}

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """Return the function whose body a node runs in; lambdas and comprehensions are passed through."""
        place = self._tree.orders.get(id(node))
        return None if place is None else self._function_at[place]

    @cached_property
    def _function_at(self) -> list[cst.FunctionDef | None]:
        """The function by the place of a node: this is asked for most calls, and climbing there takes long."""
        found: list[cst.FunctionDef | None] = [None] * len(self._tree.ordered)
        for function in self._tree.nodes(cst.FunctionDef):  # what stands in another comes after it
            self._tree.mark(found, function.body, function)
        return found

    def is_property(self, method: cst.FunctionDef) -> bool:
        """Return whether a method runs when an attribute of its name is read: ``self.model(x)`` calls what it gives."""
        return any(self._names.qualified(d.decorator) in _PROPERTIES for d in method.decorators)

    def is_static(self, method: cst.FunctionDef) -> bool:
        """Return whether a method is called without its object."""
        return any(self._names.qualified(d.decorator) == "builtins.staticmethod" for d in method.decorators)

    def results(self, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """Return what the return statements of a function give; nothing for a generator."""
        if self._results is None:
            self._results = {}
            for statement in self._tree.nodes(cst.Return):
                if statement.value is not None:
                    around = self.enclosing_function(statement)
                    self._results.setdefault(id(around), []).append(statement.value)
            for generated in self._tree.nodes(cst.Yield):
                around = self.enclosing_function(generated)
                self._results.pop(id(around), None)
                self._yielded.setdefault(id(around), []).append(generated)
        return self._results.get(id(function), [])

    def yielded(self, function: cst.FunctionDef) -> list[cst.Yield]:
        """Return the places where a generator hands out something."""
        self.results(function)
        return self._yielded.get(id(function), [])

    def owner(self, function: cst.FunctionDef) -> cst.ClassDef | None:
        """Return the class whose body a function stands in directly (under ``if`` and ``try`` too)."""
        parents = self._tree.parents
        ancestor = parents.get(id(function))
        while ancestor is not None and ancestor.__class__ not in _DEFINITIONS:
            ancestor = parents.get(id(ancestor))
        return ancestor if isinstance(ancestor, cst.ClassDef) else None

    def receiver(self, name: cst.Name) -> cst.ClassDef | None:
        """Return the class whose instance a name is, if it is the ``self`` (or ``cls``) of an enclosing method."""
        bindings = self._scopes.bindings(name)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return None
        key = id(bindings[0].node)
        if key not in self._receivers:
            self._receivers[key] = self._received(bindings[0])
        return self._receivers[key]

    def _received(self, parameter: Binding) -> cst.ClassDef | None:
        """Return the class whose instance a parameter is given."""
        function = parameter.scope.node
        if not isinstance(function, cst.FunctionDef):
            return None
        parameters = (*function.params.posonly_params, *function.params.params)
        if not parameters or parameters[0].name is not parameter.node:
            return None
        return None if self.is_static(function) else self.owner(function)

    def receiver_at(self, node: cst.CSTNode, method: cst.FunctionDef) -> str:
        """Return the name by which a node in a method reaches its object, empty where it has another meaning there."""
        parameters = (*method.params.posonly_params, *method.params.params)
        name = parameters[0].name.value if parameters else ""
        deciding = self._scopes.deciding(name, self._scopes.scope(node)) if name else None
        bindings = deciding.bindings[name] if deciding is not None and name in deciding.bindings else []
        return name if len(bindings) == 1 and bindings[0].node is parameters[0].name else ""

    def definition(self, expression: cst.CSTNode) -> cst.FunctionDef | cst.ClassDef | None:
        """Return the function, method or class of this file that an expression names, if it is only one."""
        key = id(expression)
        if key not in self._named:
            self._named[key] = None  # a name that stands for itself, through others, names nothing
            self._named[key] = self._definition(expression)
        return self._named[key]

    def _definition(self, expression: cst.CSTNode) -> cst.FunctionDef | cst.ClassDef | None:
        if isinstance(expression, cst.Name):
            found = self._scopes.bindings(expression)
            if len(found) == 1 and isinstance(found[0].node, (cst.FunctionDef, cst.ClassDef)):
                return found[0].node
            if len(found) == 1 and found[0].kind is BindingKind.ASSIGNMENT and isinstance(found[0].value, cst.Name):
                value = found[0].value
                return self.definition(value) if value.value != expression.value else None
        elif isinstance(expression, cst.Attribute) and isinstance(expression.value, cst.Name):
            owner = self.receiver(expression.value)
            if owner is None:
                named = self.definition(expression.value)
                owner = named if isinstance(named, cst.ClassDef) else None
            return self.method(owner, expression.attr.value) if owner is not None else None
        return None

    def bases(self, class_def: cst.ClassDef) -> list[cst.ClassDef]:
        """Return the base classes that the file defines, none of them below in the same scope: no class could be."""
        found = (self.definition(argument.value) for argument in class_def.bases)
        return [base for base in found if isinstance(base, cst.ClassDef) and self._may_be_base(base, class_def)]

    def family(self, class_def: cst.ClassDef) -> list[cst.ClassDef]:
        """Return a class and all that it derives from in the file, the nearest first."""
        found = [class_def]
        for each in found:
            found += [base for base in self.bases(each) if base not in found]
        return found

    def _may_be_base(self, base: cst.ClassDef, class_def: cst.ClassDef) -> bool:
        order, around = self._tree.order, self.enclosing_function
        return order(base) < order(class_def) or around(base) is not around(class_def)

    def is_brain(self, class_def: cst.ClassDef) -> bool:
        """Return whether a class descends from the ``Brain`` of SpeechBrain, which runs its methods for each batch.

        The file may define that itself, or take a class between from another file of the recipe.
        """
        ancestry = self.ancestry(class_def)
        if any(n.startswith("speechbrain.") and n.endswith(".Brain") for n in ancestry):
            return True
        if any(n.endswith("Brain") for n in ancestry) and self._scopes.imports("speechbrain"):
            computing = (self.method(class_def, name) for name in ("compute_forward", "compute_objectives"))
            return all(m is not None and any(p.name.value == "stage" for p in parameters(m)) for m in computing)
        if class_def.name.value == "Brain":
            return self.method(class_def, "compute_forward") is not None
        return any(map(self.is_brain, self.bases(class_def)))

    def is_trainer(self, class_def: cst.ClassDef) -> bool:
        """Return whether a class descends from a trainer of Hugging Face, which calls its methods for each batch."""
        return any(n.startswith(_TRAINERS) and n.endswith("Trainer") for n in self.ancestry(class_def))

    def ancestry(self, class_def: cst.ClassDef) -> tuple[str, ...]:
        """Return the qualified names of all ancestors from outside the file, through those inside it."""
        known = self._ancestries.get(id(class_def))
        if known is None:
            self._ancestries[id(class_def)] = ()  # classes cannot inherit from themselves
            names: list[str] = []
            for argument in class_def.bases:
                base = self.definition(argument.value)
                if isinstance(base, cst.ClassDef):
                    names += self.ancestry(base)
                else:
                    name = self._names.qualified(argument.value)
                    if name is not None:
                        names.append(name)
            known = self._ancestries[id(class_def)] = tuple(dict.fromkeys(names))
        return known

    def class_kind(self, class_def: cst.ClassDef) -> Kind:
        """Return what instances of a class are, by its ancestry."""
        key = id(class_def)
        if key not in self._kinds:
            self._kinds[key] = self._class_kind(class_def)
        return self._kinds[key]

    def _class_kind(self, class_def: cst.ClassDef) -> Kind:
        ancestry = self.ancestry(class_def)
        if any(name.startswith(_MODULE_CLASSES) for name in ancestry):
            return Kind.MODULE
        if any(name.startswith("torch.optim.lr_scheduler.") for name in ancestry):
            return Kind.SCHEDULER
        if any(name.startswith("torch.optim.") for name in ancestry):
            return Kind.OPTIMIZER
        if any(name in LOADER_KINDS for name in ancestry):
            return Kind.DATALOADER
        if any(name.rpartition(".")[2].endswith("Dataset") for name in ancestry):
            return Kind.DATASET
        if any(name.rpartition(".")[2].endswith("Module") for name in ancestry):
            return Kind.MODULE
        if class_def.bases and "forward" in self.methods(class_def) and self._initialises_like_a_module(class_def):
            return Kind.MODULE
        return Kind.INSTANCE

    def _initialises_like_a_module(self, class_def: cst.ClassDef) -> bool:
        """Whether a class with ``forward`` and a base from elsewhere is a module: no function, no transform of data."""
        ancestry = self.ancestry(class_def)
        return not any(name.startswith("torch.autograd.") or name.endswith("Transform") for name in ancestry)

    def methods(self, class_def: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        """Return the methods that a class defines itself."""
        key = id(class_def)
        if key not in self._methods:
            bound = self._scopes.inner(class_def).bindings
            last = ((name, found[-1].node) for name, found in bound.items())
            self._methods[key] = {name: node for name, node in last if isinstance(node, cst.FunctionDef)}
        return self._methods[key]

    def method(self, class_def: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """Return the method of a class or of its nearest base in the file."""
        own = self.methods(class_def).get(name)
        if own is not None:
            return own
        for base in self.bases(class_def):
            inherited = self.method(base, name)
            if inherited is not None:
                return inherited
        return None

    def is_overridden(self, method: cst.FunctionDef) -> bool:
        """Return whether a class of the file that derives from that of a method has another one in its place."""
        return bool(self.overriding(method))

    def overriding(self, method: cst.FunctionDef) -> list[cst.FunctionDef]:
        """Return the methods that stand in place of one in the classes of the file that derive from its class."""
        owner, name = self.owner(method), method.name.value
        below = self._subclasses.get(id(owner), []) if owner is not None else []
        others = (self.method(each, name) for each in below)
        return list({id(other): other for other in others if other is not None and other is not method}.values())

    @cached_property
    def _subclasses(self) -> dict[int, list[cst.ClassDef]]:
        """The classes of the file that derive from one of it, directly or not."""
        found: dict[int, list[cst.ClassDef]] = {}
        for each in self._tree.nodes(cst.ClassDef):
            for base in self.family(each)[1:] if each.bases else ():
                found.setdefault(id(base), []).append(each)
        return found

    @cached_property
    def functions_by_name(self) -> dict[str, list[cst.FunctionDef]]:
        """The functions and methods of the file by their names."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for function in self._tree.nodes(cst.FunctionDef):
            found.setdefault(function.name.value, []).append(function)
        return found

    def narrows(self, name: str, parameter: str) -> bool:
        """Return whether a class of the file has a method of a name that cannot be given such an argument."""
        methods = (self.methods(class_def).get(name) for class_def in self._tree.nodes(cst.ClassDef))
        return any(
            method is not None
            and method.params.star_kwarg is None
            and all(each.name.value != parameter for each in parameters(method))
            for method in methods
        )

    def attribute(self, class_def: cst.ClassDef, name: str) -> list[AttributeBinding]:
        """Return all assignments to an attribute in a class and its bases in the file."""
        found = list(self._own_attributes(class_def).get(name, ()))
        for base in self.bases(class_def):
            found += self.attribute(base, name)
        return found

    def is_buffer(self, class_def: cst.ClassDef, name: str) -> bool:
        """Return whether a class, or one of its bases in the file, registers a tensor under this name."""
        if self._buffers is None:
            self._buffers = {}
            for call in self._tree.nodes(cst.Call):
                self._collect_buffer(call)
        own = name in self._buffers.get(id(class_def), ())
        return own or any(self.is_buffer(base, name) for base in self.bases(class_def))

    def _collect_buffer(self, call: cst.Call) -> None:
        method = method_call(call, "register_buffer")
        if method is None:
            return
        owner = self.receiver(method.value) if isinstance(method.value, cst.Name) else None
        given = bind(call.args, ("name", "tensor"))
        name, held = literal(given.get("name")), given.get("tensor")
        if self._buffers is not None and owner is not None and isinstance(name, str) and not is_none(held):
            self._buffers.setdefault(id(owner), set()).add(name)

    def _own_attributes(self, class_def: cst.ClassDef) -> dict[str, list[AttributeBinding]]:
        known = self._attributes.get(id(class_def))
        if known is None:
            self._collect_attributes()
            known = self._attributes.setdefault(id(class_def), {})
        return known

    def _collect_attributes(self) -> None:
        for assign in self._tree.nodes(cst.Assign):
            for target in assign.targets:
                self._collect_target(target.target, assign.value, ())
        for annotated in self._tree.nodes(cst.AnnAssign):
            if annotated.value is not None:
                self._collect_target(annotated.target, annotated.value, ())
        for augmented in self._tree.nodes(cst.AugAssign):
            self._collect_target(augmented.target, augmented.value, ())
        for item in self._tree.nodes(cst.WithItem):
            if item.asname is not None:
                self._collect_target(item.asname.name, None, ())
        for loop in self._tree.nodes(cst.For):
            self._collect_target(loop.target, None, ())
        for class_def in self._tree.nodes(cst.ClassDef):
            own = self._attributes.setdefault(id(class_def), {})
            for name, bindings in self._scopes.inner(class_def).bindings.items():
                for binding in bindings:
                    if binding.kind is BindingKind.ASSIGNMENT:
                        own.setdefault(name, []).append(
                            AttributeBinding(binding.node, binding.value, binding.path, None)
                        )

    def _collect_target(
        self, target: cst.BaseExpression, value: cst.BaseExpression | None, path: tuple[int, ...]
    ) -> None:
        if target.__class__ is cst.Name:  # most often, and isinstance() is slow where the answer is no
            return
        if isinstance(target, (cst.Tuple, cst.List)):
            for index, element in enumerate(target.elements):
                self._collect_target(element.value, value, (*path, index))
        elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            class_def = self.receiver(target.value)
            if class_def is not None:
                binding = AttributeBinding(target, value, path, self.enclosing_function(target))
                self._attributes.setdefault(id(class_def), {}).setdefault(target.attr.value, []).append(binding)


def parameters(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """Return the positional and keyword parameters of a function, without stars."""
    return (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
