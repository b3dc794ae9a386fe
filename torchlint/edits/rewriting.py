"""Edits that write a newer form of a call in place of an older one, where more than the name changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from torchlint.edits.operations import AddKeyword, AddPositional, Edit, ListArguments, RemoveArgument, Replace
from torchlint.edits.renaming import Spelling, from_root, renamed, spelled
from torchlint.semantics.compilers.torchscript import is_script, may_become_script
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.references.symbols import Use, is_asked_for, is_only_called, moved_with, takes_all
from torchlint.semantics.tables.symbols import SymbolTable
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import is_none, literal

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.syntax.calls import Arguments

_TRIANGLE = "Of a matrix that is not exactly symmetric the new function reads the other triangle."
_LAYOUT = "The new function lays the matrix in `out` out by columns."
_OBJECT = "The function is another object: its name, or a comparison, can show it."
_DTYPE = "Of a dtype or `out` that is None the new function makes whole numbers."
_DEVICE = "The new function works on the default device, which the old one ignores."
_SCRIPT = "TorchScript, if another file compiles the module, has no default dtype to ask for."
_TYPE = "The type of the object is the base class of what it was: `isinstance` can notice."
_WHOLE = "It is right for whole numbers only, which the arguments seem to be."
_OF_ITS_ARGUMENTS = frozenset(("builtins.min", "builtins.max", "builtins.abs", "builtins.sum", "builtins.float"))
_FRACTIONS = frozenset(f"{module}.{name}" for module in ("math", "numpy", "torch") for name in ("pi", "e", "tau"))
_AUTOCAST_TO = MappingProxyType({"cuda": "torch.float16", "cpu": "torch.bfloat16"})
"""What the old forms cast to where nothing says it."""
_NESTED = "Inside another autocast the default dtype is that of the outer one."
_DIGITS = "The function is another one: the last digits, and the signs of vectors, can differ."


class Rewrite(NamedTuple):
    """The edits, and what could change: empty where nothing can."""

    edits: tuple[Edit, ...]
    why: str = ""


Rewriter: TypeAlias = "Callable[[Use, Model], Rewrite | None]"


def rewritten(use: Use, table: SymbolTable, model: Model) -> Rewrite | None:
    """Return what writes the modern form at one use of a table's symbol, None where there is no certain one."""
    found = _renamed(use, table, model) if use.symbol.replacement else _reformed(use, model)
    is_noticed = found is not None and _TYPE in found.why and is_asked_for(use, model)
    return None if is_noticed else found


def _renamed(use: Use, table: SymbolTable, model: Model) -> Rewrite | None:
    moved = moved_with(use, table, model)
    found = renamed(use, table, model) if all(takes_all(other, model) for other in moved) else None
    if found is None:
        return None
    why = next(filter(None, (_difference(other, model) for other in moved)), "")
    return Rewrite(found.edits, why or ("Other files may import the old name from this one." * found.drops_name))


def _difference(use: Use, model: Model) -> str:
    """Return what can be seen of a name's becoming another one, empty if it is nothing."""
    is_class = use.symbol.replacement.rpartition(".")[2][:1].isupper()
    why = "" if use.symbol.same else _TYPE if is_class else _OBJECT
    return why or _OBJECT * (not is_only_called(use, model))


def _reformed(use: Use, model: Model) -> Rewrite | None:
    rewriter = _REWRITERS.get(use.name)
    return None if rewriter is None or use.reference is None else rewriter(use, model)


def _called(
    use: Use, name: str, signature: tuple[str, ...], model: Model
) -> tuple[cst.Call, Arguments, Spelling] | None:
    """Return a call, its arguments and how to write the new function; None where stars carry arguments."""
    if use.call is None or use.reference is None or any(argument.star for argument in use.call.args):
        return None
    given = model.arguments(use.call, signature)
    written = from_root(use.reference, name, model)
    return None if given.extra or written is None else (use.call, given, written)


def _function(use: Use, written: Spelling) -> list[Edit]:
    assert use.reference is not None
    return [Replace(use.reference, written.code), *written.imports]


def _cholesky(use: Use, model: Model) -> Rewrite | None:
    found = _called(use, "torch.linalg.cholesky", ("input", "upper"), model)
    if found is None:
        return None
    call, given, written = found
    edits, why = _function(use, written), _LAYOUT if "out" in given.named else ""
    upper = given.nodes.get("upper")
    if upper is None:
        return Rewrite(tuple(edits), why)
    if literal(upper.value) is False:
        return Rewrite((*edits, RemoveArgument(call, upper)), why)
    if model.target.lacks((1, 10)):
        return None
    if upper.keyword is None:
        edits += [RemoveArgument(call, upper), AddKeyword(call, "upper", model.code(upper.value))]
    return Rewrite(tuple(edits), _TRIANGLE)


def _qr(use: Use, model: Model) -> Rewrite | None:
    found = _called(use, "torch.linalg.qr", ("input", "some"), model)
    if found is None:
        return None
    call, given, written = found
    edits = _function(use, written)
    matrix, some = given.nodes.get("input"), given.nodes.get("some")
    if matrix is not None and matrix.keyword is not None:
        edits += [RemoveArgument(call, matrix), AddKeyword(call, "A", model.code(matrix.value))]
    if some is not None:
        edits.append(RemoveArgument(call, some))
        if literal(some.value) is False:
            edits.append(AddKeyword(call, "mode", '"complete"'))
        elif literal(some.value) is not True:
            edits.append(AddKeyword(call, "mode", f'"reduced" if {_condition(some.value, model)} else "complete"'))
    return Rewrite(tuple(edits))


def _condition(expression: cst.BaseExpression, model: Model) -> str:
    """Return an expression as the condition of another one."""
    is_loose = isinstance(expression, (cst.IfExp, cst.Lambda, cst.NamedExpr)) and not expression.lpar
    return f"({model.code(expression)})" if is_loose else model.code(expression)


def _chain_matmul(use: Use, model: Model) -> Rewrite | None:
    if use.call is None or use.reference is None:
        return None
    written = from_root(use.reference, "torch.linalg.multi_dot", model)
    matrices = [a for a in use.call.args if a.keyword is None and a.star != "**"]
    others = [a for a in use.call.args if a.keyword is not None]
    has_star = any(a.star for a in matrices)
    if written is None or not (has_star or len(matrices) > 1) or use.call.args != (*matrices, *others):
        return None
    why = "The new function refuses a single matrix." if has_star else ""
    if any(a.keyword is not None and a.keyword.value == "out" for a in others):
        why = "The old function leaves `out` alone for two matrices."
    return Rewrite((*_function(use, written), ListArguments(use.call, matrices[-1])), why)


def _range(use: Use, model: Model) -> Rewrite | None:
    found = _called(use, "torch.arange", ("start", "end", "step"), model)
    if found is None:
        return None
    call, given, written = found
    start, end, step = given.get("start"), given.get("end"), given.get("step")
    width = literal(step) if step is not None else 1
    if end is None or not isinstance(width, int) or width == 0 or any(_is_fraction(e, model) for e in (start, end)):
        return None
    if any(_can_be_none(given.get(name), model) for name in ("dtype", "out")):
        return None  # of which the new function makes whole numbers
    edits = _function(use, written)
    edits.append(Replace(end, _one_further(end, 1 if width > 0 else -1, model)))
    if all(given.get(name) is None or is_none(given.get(name)) for name in ("dtype", "out")):
        dtype = spelled("torch.get_default_dtype", call, model)
        if dtype is None or is_script(call, model):
            return None
        edits += [RemoveArgument(call, given.nodes["dtype"])] if "dtype" in given.nodes else []
        edits += [AddKeyword(call, "dtype", f"{dtype.code}()"), *dtype.imports]
    why = "" if all(e is None or literal(e) is not None for e in (start, end)) else _WHOLE
    if not all(_is_given(given.get(name), model) for name in ("dtype", "out")):
        why = _DTYPE
    if "device" not in given.named:
        why = why or _DEVICE
    if may_become_script(call, model):
        why = why or _SCRIPT
    return Rewrite(tuple(dict.fromkeys(edits)), why)


def _is_given(expression: cst.BaseExpression | None, model: Model) -> bool:
    """Return whether an argument is left out or certainly not None, or the fix writes what None means."""
    if expression is None or is_none(expression):
        return True
    value = model.value(expression)
    return value.evidence is Evidence.PROVEN and (value.kind is Kind.DTYPE or value.is_tensor)


def _can_be_none(expression: cst.BaseExpression | None, model: Model) -> bool:
    """Return whether an argument is a name that something in sight makes None: a default, or an assignment."""
    bindings = model.bindings(expression) if isinstance(expression, cst.Name) else []
    return any(is_none(binding.part) for binding in bindings)


def _is_fraction(expression: cst.BaseExpression | None, model: Model, depth: int = 3) -> bool:
    """Return whether a number is a fraction, or computed in fractions."""
    if expression is None or not depth:
        return False
    value = literal(expression)
    if value is not None:
        return not isinstance(value, int)
    parts: list[cst.BaseExpression | None] = []
    if isinstance(expression, cst.BinaryOperation):
        is_inverse = isinstance(expression.operator, cst.Power) and isinstance(expression.right, cst.UnaryOperation)
        if is_inverse or isinstance(expression.operator, cst.Divide):
            return True
        parts = [expression.left, expression.right]
    elif isinstance(expression, cst.UnaryOperation):
        parts = [expression.expression]
    elif isinstance(expression, cst.IfExp):
        parts = [expression.body, expression.orelse]
    elif isinstance(expression, cst.NamedExpr):
        parts = [expression.value]
    elif isinstance(expression, cst.Call) and model.qualified_name(expression.func) in _OF_ITS_ARGUMENTS:
        parts = [argument.value for argument in expression.args]
    elif isinstance(expression, cst.Name):
        parts = [binding.part for binding in model.bindings(expression)]
    if isinstance(expression, (cst.Name, cst.Attribute)) and model.qualified_name(expression) in _FRACTIONS:
        return True
    return any(_is_fraction(part, model, depth - 1) for part in parts)


def _one_further(end: cst.BaseExpression, sign: int, model: Model) -> str:
    """Return an end that is not included in place of one that is, without the parentheses around that."""
    value = literal(end)
    if isinstance(value, int):
        return str(value + sign)
    end = end.with_changes(lpar=(), rpar=())
    is_sum = isinstance(end, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    if isinstance(end, cst.BinaryOperation):
        is_sum = isinstance(end.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide))
        number = literal(end.right)
        if isinstance(end.right, cst.Integer) and isinstance(number, int) and is_sum:
            total = {cst.Add: number + sign, cst.Subtract: sign - number}.get(type(end.operator))
            if total is not None:
                shown = f" {'+' if total > 0 else '-'} {abs(total)}" if total else ""
                return f"{model.code(end.left)}{shown}"
    text = model.code(end)
    return f"{text if is_sum else f'({text})'} {'+' if sign > 0 else '-'} 1"


def _autocast(device: str, use: Use, model: Model) -> Rewrite | None:
    names = ("enabled", "dtype", "cache_enabled")
    if use.call is None or use.reference is None:
        return None
    written = from_root(use.reference, "torch.amp.autocast", model)
    given = model.arguments(use.call, names)
    if written is None or given.open_positions or given.extra:
        return None
    edits = [*_function(use, written), AddPositional(use.call, f'"{device}"')]
    for name, argument in given.nodes.items():
        if argument.keyword is None:
            edits += [RemoveArgument(use.call, argument), AddKeyword(use.call, name, model.code(argument.value))]
    is_settled = "dtype" in given.named
    is_off = literal(given.get("enabled")) is False
    if not is_settled and not is_off and _is_in_autocast(use.call, model):
        dtype = None if given.open else spelled(_AUTOCAST_TO[device], use.call, model)
        if dtype is None:
            return None
        edits += [AddKeyword(use.call, "dtype", dtype.code), *dtype.imports]
        is_settled = True
    reasons = () if is_settled and not given.open else (_NESTED,)
    return Rewrite(tuple(edits), " ".join(reasons if _is_entered(use.call, model) else (*reasons, _TYPE)))


def _is_in_autocast(call: cst.Call, model: Model) -> bool:
    """Return whether a call stands inside an autocast that chooses a dtype, which the new form would take over."""
    contexts: list[cst.BaseExpression] = []
    for ancestor in model.ancestors(call):
        if isinstance(ancestor, cst.With):
            contexts += [item.item for item in ancestor.items]
        elif isinstance(ancestor, cst.FunctionDef):
            contexts += [decorator.decorator for decorator in ancestor.decorators]
    outer = (found for found in contexts if isinstance(found, cst.Call) and found is not call)
    return any(_chooses_dtype(found, model) for found in outer)


def _chooses_dtype(context: cst.Call, model: Model) -> bool:
    name = model.callee(context) or ""
    if not (name.startswith("torch.") and name.endswith(".autocast")):
        return False
    given = model.arguments(context, ("device_type", "dtype"))  # the second one of the old form too
    return given.open or "dtype" in given.named


def _is_entered(call: cst.Call, model: Model) -> bool:
    """Return whether a context is entered, or decorates, where it is made: nobody else gets hold of it."""
    parent = model.parent(call)
    if isinstance(parent, cst.Call):
        return parent.func is call
    return isinstance(parent, cst.Decorator) or (isinstance(parent, cst.WithItem) and parent.asname is None)


def _scaler(device: str, use: Use, model: Model) -> Rewrite | None:
    if use.call is None or use.reference is None:
        return None
    written = from_root(use.reference, "torch.amp.GradScaler", model)
    if written is None:
        return None
    return Rewrite((*_function(use, written), AddPositional(use.call, f'"{device}"')), _TYPE)


def _custom(name: str, use: Use, model: Model) -> Rewrite | None:
    if use.reference is None:
        return None
    written = from_root(use.reference, name, model)
    if written is None:
        return None
    if use.call is not None:
        return Rewrite((*_function(use, written), AddKeyword(use.call, "device_type", '"cuda"')))
    if not isinstance(model.parent(use.reference), cst.Decorator):
        return None
    return Rewrite((Replace(use.reference, f'{written.code}(device_type="cuda")'), *written.imports))


def _upsampling(options: Mapping[str, str], use: Use, model: Model) -> Rewrite | None:
    found = _called(use, "torch.nn.Upsample", ("size", "scale_factor"), model)
    if found is None:
        return None
    call, _, written = found
    added = [AddKeyword(call, name, code) for name, code in options.items()]
    return Rewrite((*_function(use, written), *added), _TYPE)


def _matrix_rank(use: Use, model: Model) -> Rewrite | None:
    found = _called(use, "torch.linalg.matrix_rank", ("input", "tol", "symmetric"), model)
    if found is None:
        return None
    call, given, written = found
    edits = _function(use, written)
    symmetric = given.nodes.get("symmetric")
    if symmetric is not None and symmetric.keyword is not None:
        edits += [RemoveArgument(call, symmetric), AddKeyword(call, "hermitian", model.code(symmetric.value))]
    return Rewrite(tuple(edits), _DIGITS)


def _solve(use: Use, model: Model) -> Rewrite | None:
    found = _called(use, "torch.linalg.solve", ("input", "A"), model)
    whole = _first_result(use, "solution", model)
    if found is None or whole is None:
        return None
    _, given, written = found
    right, left = given.get("input"), given.get("A")
    if right is None or left is None or len(given.named) > 2:
        return None
    code = f"{written.code}({model.code(left)}, {model.code(right)})"
    return Rewrite((Replace(whole, code), *written.imports), _DIGITS)


def _symeig(use: Use, model: Model) -> Rewrite | None:
    vectors = literal(model.arguments(use.call, ("input", "eigenvectors")).get("eigenvectors")) if use.call else None
    whole = use.call if vectors is True else _first_result(use, "eigenvalues", model)
    name = "torch.linalg.eigh" if vectors is True else "torch.linalg.eigvalsh"
    found = _called(use, name, ("input", "eigenvectors", "upper"), model)
    if found is None or whole is None:
        return None
    _, given, written = found
    matrix, wanted, upper = given.get("input"), given.get("eigenvectors"), given.get("upper")
    if matrix is None or "out" in given.named or (wanted is not None and literal(wanted) is None):
        return None
    half = f'"U" if {_condition(upper, model)} else "L"' if upper is not None and literal(upper) is None else '"U"'
    half = '"L"' if upper is not None and literal(upper) is False else half
    code = f"{written.code}({model.code(matrix)}, UPLO={half})"
    return Rewrite((Replace(whole, code), *written.imports), _DIGITS)


def _first_result(use: Use, name: str, model: Model) -> cst.BaseExpression | None:
    """Return the expression that takes the first of a call's results: ``f(x).name`` or ``f(x)[0]``."""
    parent = model.parent(use.call) if use.call is not None else None
    if isinstance(parent, cst.Attribute) and parent.attr.value == name:
        return parent
    if isinstance(parent, cst.Subscript) and parent.value is use.call and len(parent.slice) == 1:
        index = parent.slice[0].slice
        return parent if isinstance(index, cst.Index) and literal(index.value) == 0 else None
    return None


_REWRITERS: Mapping[str, Rewriter] = MappingProxyType(
    {
        "torch.cholesky": _cholesky,
        "torch.qr": _qr,
        "torch.chain_matmul": _chain_matmul,
        "torch.range": _range,
        "torch.cuda.amp.autocast": partial(_autocast, "cuda"),
        "torch.cpu.amp.autocast": partial(_autocast, "cpu"),
        "torch.cuda.amp.GradScaler": partial(_scaler, "cuda"),
        "torch.cpu.amp.GradScaler": partial(_scaler, "cpu"),
        "torch.cuda.amp.custom_fwd": partial(_custom, "torch.amp.custom_fwd"),
        "torch.cuda.amp.custom_bwd": partial(_custom, "torch.amp.custom_bwd"),
        "torch.nn.UpsamplingNearest2d": partial(_upsampling, {"mode": '"nearest"'}),
        "torch.nn.UpsamplingBilinear2d": partial(_upsampling, {"mode": '"bilinear"', "align_corners": "True"}),
        "torch.matrix_rank": _matrix_rank,
        "torch.solve": _solve,
        "torch.symeig": _symeig,
    }
)
