"""Networks that read text: encoders, heads, and the one loop that trains them. The only room that imports torch.

Shared by the stages that need them (index, match), as the kernels are: nothing here knows of stages or run folders.
"""
