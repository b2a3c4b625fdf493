"""The words settings use for encoders, heads, losses and devices; apart, so that reading settings does not load torch."""

TRANSFORMER, BILSTM = "transformer", "bilstm"
ENCODERS = (TRANSFORMER, BILSTM)
CLS, SELF_ATTENTION = "cls", "self_attention"
HEADS = (CLS, SELF_ATTENTION)
FIRST, MEAN, LAST = "first", "mean", "last"
POOLING = (FIRST, MEAN, LAST)  # XLNet's [CLS] is the last token
BCE, SQUARED_HINGE = "bce", "squared_hinge"
LOSSES = (BCE, SQUARED_HINGE)
AUTO, CPU, CUDA, MPS = "auto", "cpu", "cuda", "mps"
DEVICES = (AUTO, CPU, CUDA, MPS)
FP32, BF16, INT8 = "fp32", "bf16", "int8"
PRECISIONS = (AUTO, FP32, BF16)
ANSWERING = (*PRECISIONS, INT8)  # 8 bits are too few to learn in
EAGER, SDPA = "eager", "sdpa"
