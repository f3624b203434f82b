"""What takes the time on a CPU, with its backward pass written out: attention by blocks of queries,
experts group by group, norm and rotation. Sizes are read by the host here, which costs nothing.

Whatever only a CPU uses is in this package, and what is used from outside is named here.
`trainer.model.paths` says where the two ways part.
"""

from trainer.model.cpu.blocked import QueryBlock as QueryBlock
from trainer.model.cpu.blocked import attend as attend
from trainer.model.cpu.blocked import blocks_of as blocks_of
from trainer.model.cpu.experts import grouped_swiglu as grouped_swiglu
from trainer.model.cpu.experts import heard as heard
from trainer.model.cpu.experts import sent as sent
from trainer.model.cpu.norm import normed as normed
from trainer.model.cpu.rotary import rotated as rotated
