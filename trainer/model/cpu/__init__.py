"""What takes the time on a CPU, with its backward pass written out: attention by blocks of queries,
grouped products, the norm. Sizes are read by the host here, which costs nothing.

Whatever only a CPU uses is in this package, and what is used from outside is named here.
`trainer.model.paths` says where the two ways part.
"""

from trainer.model.cpu.blocked import QueryBlock as QueryBlock
from trainer.model.cpu.blocked import attend as attend
from trainer.model.cpu.blocked import blocks_of as blocks_of
from trainer.model.cpu.grouped import grouped_product as grouped_product
from trainer.model.cpu.norm import scaled as scaled
