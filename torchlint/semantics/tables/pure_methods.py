"""Methods of tensors that give another tensor, and change nothing."""

from __future__ import annotations

import re

IN_PLACE_TOO = frozenset(
    "abs add addcmul addmm atan2 bitwise_and ceil clamp clip cos cumprod cumsum detach div divide erf exp expm1 floor "
    "fmod lerp log log10 log1p log2 logical_and logical_not logical_or masked_fill masked_scatter mul multiply "
    "nan_to_num neg pow reciprocal relu remainder round rsqrt scatter scatter_add sigmoid sign sin sqrt square squeeze "
    "sub subtract tan tanh transpose trunc unsqueeze".split()
)
"""Those that have a form which works in place."""

NEW_MEMORY = IN_PLACE_TOO - frozenset("detach squeeze transpose unsqueeze".split())
"""Those of them whose result shares no memory with the tensor."""

CHANGES = re.compile(r"^(?!_|requires_grad_$|retain_grad_$|share_memory_$)\w+_$")
"""What methods are called that change the numbers of a tensor in place."""

MOVES = frozenset("to cuda cpu float double half bfloat16 int long bool type type_as".split())
"""Those that move or convert."""

PURE_METHODS = frozenset(
    "amax amin argmax argmin bmm clone contiguous expand flatten flip gather index_select log_softmax masked_select "
    "matmul mean mm permute prod repeat reshape roll softmax std sum unfold var view where".split()
)
"""All others."""

MOVING_THEMSELVES = ("torch_geometric", "transformers", "dgl", "tensordict", "torchtext", "tokenizers")
"""What has objects that move themselves, as no tensor does: encodings, graphs, and batches that hold them."""

MOVING = MOVES | {"contiguous", "detach", "clone"}
"""The methods by which such objects do."""

OF_STRUCTURES = frozenset(
    "x y pos edge_index edge_attr batch num_graphs to_data_list get_example input_ids attention_mask ndata edata keys "
    "items values fields".split()
)
"""What such objects are asked for."""
