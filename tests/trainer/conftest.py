"""The models of these tests are tiny: a second thread costs more than it gives, and where other
processes have the cores, waiting for it makes an operation take twenty times as long."""

import torch

torch.set_num_threads(1)
