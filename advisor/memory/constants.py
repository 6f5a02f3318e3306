"""Holds every constant of the ledger: unit, reason, source. None belongs to one framework (that is `Mechanics`).

Sources named "torch", "deepspeed", "vllm", "verl", "OpenRLHF" are those projects' own code; "judgement" says that no
source gives the number and names what it rests on.
"""

from __future__ import annotations

from advisor.memory.amount import in_bytes, quantity
from advisor.units import GIB, KIB, MIB

# --- bytes of an element ------------------------------------------------------------------------------------------
BF16, FP32 = 2, 4
IN_BF16, IN_FP32 = in_bytes("", BF16), in_bytes("", FP32)
"""The same as leaves of a formula."""

# --- what every CUDA process holds --------------------------------------------------------------------------------
CONTEXT_LOW, CONTEXT_HIGH = 0.7, 1.5
"""Factors on Mechanics.context_bytes: a context is 0.2-0.8 GiB by card and driver (226 MiB L4, 501 MiB A100)."""
NCCL = in_bytes("of NCCL communicators", 512 * MIB, low=256 * MIB, high=GIB, basis="estimated")
"""Bytes per GPU of communicators in a job of several GPUs: 0.2-0.6 GiB each (NCCL's default buffers)."""
FRAGMENTATION = quantity("", 0.04, "%", low=0.02, high=0.10, basis="estimated")
"""Part of what torch allocated that its allocator holds beside it: 3-6 % usual, 10-15 % with variable lengths and no
expandable segments (judgement over torch's reserved-minus-allocated readings)."""

# --- activations (bytes per token and layer; HF Llama and Qwen layers in bf16 with FlashAttention) -------------------
HIDDEN_COPIES, HEAD_COPIES, KV_COPIES, MLP_COPIES = 16, 4, 4, 8
"""Bytes per element kept for backward: two RMSNorms, each an fp32 copy, its bf16 normed copy and its output (the stream
itself is not kept); q and the attention's output; k and v; gate, up, silu and product in bf16 (8). Counted by
tests/gpu on transformers 5 (knowledge/measured.yaml: within 0.1 %)."""
UNGATED_MLP_COPIES = 6
"""The same of an MLP without a gate: what its activation takes and gives, and what `gelu_new`, made of elementary
operations, keeps between (4 where the activation is one operation, up to 10; judgement)."""
FUSED_HIDDEN_COPIES, FUSED_MLP_COPIES = 8, 6
"""The same with fused kernels: a norm keeps its bf16 input and its output, SwiGLU gate, up and product (liger-kernel,
ops/rms_norm.py and ops/swiglu.py: what each saves for backward)."""
GATHERED_COPIES = 4
"""Of these, per hidden element, what tensor-parallel ranks that split the stream hold whole: the gathered inputs of q,
k, v and of gate and up, which torch's linear keeps (torch/distributed/tensor/parallel/style.py, ColwiseParallel)."""
HEAD_NORM_COPIES = 6
"""The same per element of q and k where they are normed (Qwen3): an fp32 copy and the bf16 normed one."""
AUTOCAST_COPIES = 10
"""Per hidden element where fp32 weights make the stream fp32: each of q, k, v, gate and up keeps its own bf16 cast."""
CHECKPOINT_PIECES = 4
"""Inputs that a layer keeps whose two norms, attention and MLP are checkpointed apart (NVIDIA-NeMo/RL@v0.5.0
nemo_rl/models/dtensor/parallelize.py:659-681)."""
OFFLOADED_LAYERS = 2
"""Layers whose inputs are on the GPU at a time where activations are offloaded: one in use, one on its way (verl,
utils/activation_offload.py)."""
PINNED_HIGH = 2
"""Factor on what is pinned tensor by tensor: torch rounds each block to a power of two."""
ROOT_COPIES = 4
"""Copies of FSDP's root unit at its reduction, in the unsharded precision: tied weights have a gradient each, and their
sum; as many on a single rank (judgement)."""
LAST_NORM = 8
"""Per hidden element, once: the last norm, and the head's input."""
BACKWARD_MLP = 4
"""Per element of the MLP's width: gradients beside what a recomputed layer keeps, at their fullest."""
FORWARD_HIDDEN, FORWARD_MLP = 6, 6
"""Without gradients: layer input, stream and norm's output; silu(gate), up and their product."""
EXPERT_COPIES = 3
"""Copies of [tokens * experts per token, hidden] in bf16 for dispatch and return (2-4; judgement, low confidence)."""
RECOMPUTE_FACTOR = 1.4
"""Working set of one checkpointed layer in backward, relative to what it keeps: kept tensors and their gradients
(judgement)."""
FORWARD_FACTOR = 0.6
"""The same without gradients: norms and MLP temporaries die one after the other (judgement)."""
ACTIVATION_LOW, ACTIVATION_HIGH = 0.8, 1.3
"""Fused norms and MLPs (Liger, torch.compile) keep about half of the eager ones; dropouts and LoRA inputs add."""
VISION_LAYERS, VISION_HIDDEN = 32, 1280
VISION_KEPT_BYTES = 26 * 1280 + 8 * 3420
"""A Qwen2.5-VL tower: layers, width, and bytes per patch and layer that a recomputed layer keeps."""
PATCH_PIXELS = 14 * 14
PATCH_BYTES = 1176 * FP32
"""A patch of 14 x 14 pixels, and its pixel values: 1176 floats in fp32 (Qwen2-VL's image processor)."""
PATCHES_OF_TOKEN = 4
"""Patches that a token of the language model stands for: 2 x 2 are merged (Qwen2-VL to Qwen3-VL)."""
IMAGE_PART = 0.5
"""Part of a packed row's tokens that are of images (judgement: between none and all)."""
TYPICAL_IMAGE_PIXELS = 512 * 512
"""An image of the usual vision data sets (geo3k, clevr): below half a megapixel; EasyR1's min_pixels (judgement)."""

# --- tokens in a pass --------------------------------------------------------------------------------------------
FILL, FILL_LOW = 0.3, 0.06
"""Part of the longest length that a sequence without padding has on average, and where they are short. One sequence of
a pass is taken to reach the cap (judgement: mean response lengths of RL runs are a quarter to a third of their cap
before training lengthens them, a twentieth where the cap is made for what training may come to, as DAPO's 20,480;
the cap itself is the cell's high)."""
FILL_GIVEN, FILL_GIVEN_LOW = 0.2, 0.1
"""The same of data that hold their answers (instructions, preference pairs), whose cap only guards against outliers:
samples of 200 to 500 tokens below a cap of 2,048 are usual (judgement)."""
LONGEST_GIVEN = 0.55
"""The same of the longest row of such a pass, to which the others are padded (transformers' collators): between the
0.3 that the usual instructions leave below a cap of 2,048 and data that are cut at it (judgement; ends of the interval
are FILL_GIVEN_LOW and the cap)."""
USUAL_CAP = 2048
"""The cap that rows of text are usually given. One above it that comes with a cap on pixels makes room for an image:
the longest row is then taken as that image and the text below the usual cap (judgement)."""
PUBLISHED_HIGH = 1.25
"""Factor on the longest row that is published of a data set: tokenizers, templates and system prompts differ
(judgement)."""
SHORTEST_PADDED, SHORTEST_PACKED = 0.8, 0.95
"""Part of the longest row that is told that the longest batch reaches at the least, and the same of packed rows
(judgement: an epoch has long rows)."""
BALANCE_SLACK = 1.05
"""A balanced partition may exceed the token budget a little (verl, seqlen_balancing.py)."""
ASSUMED_LENGTH = 4096
"""Tokens of prompt and response where the script and the log say nothing (judgement)."""

ASSUMED_PROMPT = 512
"""Tokens of a prompt where the framework cuts none and nobody says (judgement: what TRL cut them to until 0.25)."""

# --- logits -------------------------------------------------------------------------------------------------------
EAGER_ENTROPY_UPDATE, EAGER_ENTROPY_FORWARD = 28, 14
"""Bytes per token x vocabulary entry where entropy is computed from full logits without compilation: the padded path of
verl (dp_actor.py) and OpenRLHF's eager entropy, counted by autograd's own allocations."""
CHUNKED_ENTROPY_UPDATE, ENTROPY_CHUNK_BYTES, ENTROPY_CHUNK_TOKENS = 13.5, 12, 2048
"""Entropy in chunks of tokens (verl, torch_functional.py entropy_from_logits_with_chunking): a chunk's fp32 copies in a
pass; with gradients the graph of every chunk is kept as well (counted by autograd at 1.5 and 3 chunks)."""
FLOAT_LOSS, FLOAT_LOSS_FORWARD = 12, 10
"""Bytes per token x vocabulary entry of a loss that casts bf16 logits to fp32: log-softmax and two gradients; without
gradients the logits, which an evaluation returns, their fp32 copy, and the log-softmax."""
TWO_LOGITS, JSD_HALF, JSD_FLOAT = 4, 26, 48
"""Bytes per token x vocabulary entry of a loss over two models' distributions (trl gkd_trainer.py generalized_jsd_loss,
ms-swift gkd_loss.py): both models' bf16 logits; and over the answers alone, counted by hand, what autograd keeps of the
divergence: scaled logits, log-probabilities, their stack, mixture, both terms. In bf16 under DeepSpeed."""
EAGER_WHOLE = {True: 3, False: 0}
LOGITS_LOW, LOGITS_HIGH = 0.85, 1.34
"""At most one copy more than Mechanics says (16 against 12 bytes), or a part of one less (12 against 14)."""
SHORTER_TOLD = quantity("of one pass", 1.6, "%", low=0.2, high=3.7, basis="estimated")
"""Logits' blocks of earlier, shorter passes that stay reserved, in logits of the longest pass: torch's allocator
replayed on 400 passes of log-normal lengths reserves 1.2 to 4.7 times what that pass holds, 2.6 in the middle."""
SHORTER_GIVEN = quantity("of one pass", 1.0, "%", low=0.2, high=1.6, basis="estimated")
"""The same where the longest row is not known but taken as LONGEST_GIVEN: together as much as one pass at the cap,
which four published readings of rows that are not packed meet (2, 3, 5 and 9 of docs/accuracy.md)."""
SHORTER_AT_CAP = quantity("of one pass", 0.05, "%", low=0, high=1.6, basis="estimated")
"""The same of a pass at the cap: most passes are cut there, and find their blocks again (judgement)."""
HEAD_COPIES_OF_FUSED_LOSS = 2
"""Copies of the head's matrix in bf16 that a fused loss holds in an update: its gradient, and a cast (judgement)."""
FUSED_CHUNK_TOKENS, FUSED_CHUNK_BYTES, FUSED_CHUNK_FORWARD_BYTES = 512, 10, 14
"""A loss without full logits holds one chunk: tokens, and bytes per token x vocabulary entry (verl's fused kernels:
512 to 2048 tokens, 2 + 4 + 4 bytes; 4 more without gradients, where nothing is overwritten)."""

# --- DeepSpeed -----------------------------------------------------------------------------------------------------
LIVE_PARAMETERS = 1_000_000_000
"""Elements: stage3_max_live_parameters (deepspeed/runtime/zero/config.py)."""
PREFETCH_PARAMETERS = 50_000_000
"""Elements: stage3_prefetch_bucket_size (same file)."""
SUB_GROUP = 1_000_000_000
"""Elements: sub_group_size (same file); the optimizer step upcasts the gradients of one group at a time."""
CPU_ADAM = in_bytes("of a master", 4) + in_bytes("of moments", 8) + in_bytes("of gradients", 6, low=4)
CPU_ADAM_MARGIN = 1.5
"""Bytes per parameter of CPU Adam: 4 master + 8 moments + 4 gradients (+ 2 bf16 gradients, pinned); DeepSpeed's
estimator multiplies by 1.5 for buffers (stage3.py, additional_buffer_factor)."""
SHARD_FILE = 5_000_000_000
"""Bytes: the usual size of one safetensors file, read by every rank under zero.Init (transformers max_shard_size)."""

ASSUMED_STAGE = 2
"""ZeRO stage where a DeepSpeed file is named but could not be read: between 0 and 3, which are the interval's ends
(judgement)."""

BROADCAST_BUCKET = in_bytes("in a bucket", 250 * MIB, basis="estimated")
"""DDP's broadcast_bucket_size (torch/nn/parallel/distributed.py); a tensor that is larger is a bucket of its own."""
RECORDS_STREAMS = "<2.8"
"""torch whose NCCL process group hands tensors to its stream by record_stream (pytorch#147168; removed by #150398)."""
BROADCAST_IN_FLIGHT = quantity("", 0.85, "%", basis="estimated")
"""Part of those copies that is alive at once there: the host runs ahead of the link, not at its very start. Between the
two buckets that DDP means to keep and all; two published readings leave 0.82 and 0.87 (ms-swift@3602360
examples/train/multi-gpu/ddp and ddp_device_map; judgement). meta-pytorch/torchtune#843 saw 78 GB instead of 23."""
LEFT_BY_OTHER_LENGTHS = quantity("", 0.1, "%", low=0, high=0.41, basis="estimated")
"""Part of what torch allocated that it reserves beyond FRAGMENTATION where passes differ in length: of 11 pairs of
allocated and reserved peaks that users of verl and its like published (16.1 and 23.6 GiB, 42.9 and 60.4, 10.2 and 13.7,
53.9 and 66.6, 20.8 and 25.8, 34.8 and 39.7, 36.4 and 41.6, 86.8 and 94.6, 39.8 and 43.1, 204.9 and 216.9, 75.7 and
76.4) the second is 1 to 46 % above the first, 14 % in the middle."""
GIVEN_BACK_ABOVE = 0.8
"""Part of the GPU up to which segments that nobody uses are counted: torch gives them back before it fails."""
UNFILLED = 0.5
"""Part of an update's activations whose blocks the optimizer's temporaries do not fill (judgement: between none and
all)."""
STEP_LOW = 0.7
"""Part of the optimizer step's temporaries that is there at the least, where the optimizer is not a fused one
(torch frees them tensor by tensor; judgement)."""

# --- Megatron (bytes per token and layer with fused norms and activations; Transformer Engine) ------------------------
MEGATRON_HIDDEN, MEGATRON_MLP = 8, 6
"""Two norms' inputs, the stream and the block's outputs in bf16; gate, up and their product."""
MEGATRON_PAIR_HIDDEN = 2
"""A token's copy for each chosen expert that grouped kernels keep, in bf16; dispatch is in the allowance below.
verl's run_qwen3moe-30b_megatron_96gb.sh, which recomputes nothing and was run on 96 GB, holds no more than this."""
MEGATRON = in_bytes("of communicators and workspaces", 5 * GIB // 2, low=GIB, high=8 * GIB, basis="estimated")
"""Communicators of all groups beyond the first, Transformer Engine's workspaces, gathered sequences and gradients on
their way: what measured dense Megatron runs hold beyond states and activations (1 to 6 GiB; judgement)."""
MEGATRON_EXPERTS = in_bytes("of dispatch to experts", 7 * GIB, low=2 * GIB, high=15 * GIB, basis="estimated")
"""The same of a mixture of experts: a rank whose experts are chosen twice as often as the average receives, permutes
and sends back twice the tokens, and grouped kernels have workspaces (judgement, low confidence)."""

# --- LoRA, quantised weights, optimizers ------------------------------------------------------------------------------
FUSED_BY_TORCH, FUSED_BY_TRANSFORMERS = ">=2.8", ">=4.54"
"""Versions that together make transformers' default optimizer the fused AdamW, which needs no temporaries
(transformers@v4.54.0 src/transformers/training_args.py, default_optim)."""
ADAPTER_STATE_BYTES = 16
"""Bytes per adapter parameter: fp32 weight, gradient and two moments (PEFT keeps adapters in fp32)."""
MEGATRON_ADAPTER_BYTES = 18
"""The same under Megatron: bf16 weight, fp32 gradient, fp32 master and two moments."""
ASSUMED_RANK = 8
"""PEFT's default rank."""
NF4_BYTES = 0.55
"""Bytes per 4-bit parameter with its block constants (bitsandbytes nf4, double quantisation off)."""
MOMENT_BYTES_8BIT = 2
"""Two moments of one byte each (bitsandbytes)."""
USUAL_RANK = 128
"""Rank of the projections of GaLore and APOLLO where nothing says (transformers, trainer.py: galore's default)."""
ADAFACTOR_STEP_BYTES = 2 * FP32
"""Per parameter of the matrix at work: the update and its factors' product in fp32; 16-bit weights and gradients have a
copy in fp32 each beside them (transformers@v5.17.0 src/transformers/optimization.py, Adafactor.step; 2.1 GiB measured
for a table of 136e6, tests/measured/h200_trl.yaml)."""
KAHAN_MOMENT_BYTES = 6
"""adamw_bf16: two moments and a compensation buffer in bf16 (EasyR1, AnyPrecisionAdamW)."""

# --- LoRA, tensor by tensor: fp32 adapters on a bf16 base under autocast, every layer checkpointed --------------------
# Bytes per token and layer, counted on the modules of transformers 5.11 and liger 0.8.1 with PEFT's fp32 adapters by
# recording every allocation of a pass on meta tensors (53 runs of 7 dense models: the sums hold to 0.3 %).
LORA_HIDDEN, LORA_HEADS, LORA_KEYS = 18, 6, 4
"""Backward of one recomputed layer: the stream, its norms, their gradients and the bf16 casts of q's, k's and v's
inputs; rotated q, the attention's output and its cast; k and v."""
LORA_HEAD_NORM = 6
"""q and k where each head is normed (Qwen3): an fp32 copy and the normed one, in bytes per element; a fused norm
keeps its bf16 input alone."""
LORA_KEPT = 5
"""What a layer that is not checkpointed keeps beside a plain one: casts of the inputs of its adapters, in bytes per
hidden element (tests/gpu, three models)."""
EAGER_FORWARD = 1.5
"""Eager norms in a pass without gradients, in bytes per hidden element (tests/gpu: three models at two lengths each
leave 12.2 bytes in all beside the MLP's, once moments and casts of the adapters are taken off)."""
LORA_MLP_INPUTS = 4
"""bf16 casts of the layer's stream that the adapters of gate and up keep, in bytes per hidden element."""
LORA_MLP = 12
"""gate, up and product (6), the product's cast (2), and the fp32 gradient on its way to bf16 (4)."""
PLAIN_MLP = 10
"""The same without adapters in the MLP: gate, up, product, and gradients of two of them (judgement from the former)."""
KBIT_MLP = 6
"""gate, up and product in fp32 beside their bf16 sizes: a 4-bit matrix hands out the precision of what it was given
(bitsandbytes, nn/modules.py, Linear4bit.forward), which is fp32 where PEFT prepared the model."""
EAGER_NORMS = 10
"""Two norms that keep fp32 copies instead of Liger's fused ones, in bytes per hidden element."""
LORA_EXPERT_HIDDEN, LORA_EXPERT = 8, 6
"""Backward of grouped experts, per token and chosen expert: inputs, outputs, weighted outputs and their gradients of
hidden width; gate and up with their product."""
LORA_FORWARD_MLP, LORA_FORWARD_HIDDEN, LORA_FORWARD_EXPERT = 8, 10.5, 8
"""A pass without gradients: up, product and its fp32 cast; the stream; grouped experts of hidden width."""
LOSS_HIDDEN = 8
"""Hidden states, their copy without the last token, and the gradients of both, at the loss."""
PER_LAYER_COPIES, PER_LAYER_FORWARD = 6, 4
"""Per-layer embeddings of all layers: three bf16 copies kept, two in a pass without gradients (Gemma 4)."""
SCORES_ALONE, SCORES_PADDED = 4.5, 0.75
"""fp32 score matrices of a full-attention layer whose heads are too wide for FlashAttention and whose keys are shared
by several queries: torch's math kernel holds five for a row alone (nothing is padded, so no mask is passed); rows of
different lengths are masked and go to the memory-efficient kernel. Between them: judgement over Gemma 4's readings."""
SCORES_WIDEST_FLASH = 256
"""Head dimension above which FlashAttention has no kernel."""
TILE_BYTES, TILE_ROWS_LOW, TILE_ROWS_HIGH = 6, 128, 4096
"""A tile of logits in bf16 and in fp32; rows of a tile at least and at most (AgileRL, memory/formulas.py)."""
ADAPTER_LAYER_LOW, ADAPTER_LAYER_HIGH = 0.92, 1.12
"""Factors on a counted layer: kernels and versions differ by so much (judgement over those recordings)."""
TILE_LOW = 0.7
"""Part of a tile that is there at the least: the last one is shorter (judgement)."""
SCORES_LOW, SCORES_HIGH = 0.5, 2
"""Factors on score matrices, whose number is a judgement."""

# --- what torch's segments lose (c10/cuda/CUDACachingAllocator replayed on those recorded passes) ---------------------
LOST_OF_INPUTS = quantity("", 0.43, "%", basis="estimated")
LOST_OF_ADAPTERS = quantity("of one adapter", 0.8, "%", basis="estimated")
"""Layer inputs are cut out of segments that larger temporaries then cannot use: bytes lost per byte kept; the same of
small adapter matrices, per byte of one fp32 copy of them (least squares over 53 replayed runs, mean error 1.6 % of the
reserved bytes, worst 7 %)."""
LOST_LOW, LOST_HIGH = 0.4, 1.7
"""Factors on all of it (judgement over those runs)."""

# --- vLLM that counts its graphs inside its share (>= 0.21) -----------------------------------------------------------
GPU_CONTEXT = 450 * MIB
"""CUDA context of a card that gpus.yaml does not know (226 MiB on L4, 501 MiB on A100)."""
GPU_CONTEXT_LOW, GPU_CONTEXT_HIGH = 0.9, 1.2
"""Factors on the context of a card that gpus.yaml does know."""
KERNELS_LOADED = 0.35
"""Part of a context that kernels loaded later add beside it (torch, vLLM, compiled graphs): 80 MiB L4, 175 MiB A100."""
GRAPH_BYTES = 800 * KIB
"""Bytes per layer and captured size, mixed and decode graphs together (sleeping engines of 4, 8 and 16 sequences)."""
GRAPH_SIZES = (1, 2, 4)
GRAPH_STEP, GRAPH_MOST = 8, 256
"""Captured sizes: these, then every 8 up to twice the sequences in flight (vllm@v0.23.0 vllm/config/vllm.py:1700)."""
PREFILL_HIDDEN, PREFILL_MLP = 4, 6
"""Bytes per token of an engine step at its fullest: residual and input of the MLP; gate, up and their product."""
INPUT_BYTES = 40
"""Bytes per token of an engine step for ids, positions, slots and adapter indices, beside its embedding in bf16
(vllm@v0.23.0 vllm/v1/worker/gpu_model_runner.py:718-755, vllm/lora/punica_wrapper/punica_base.py:138)."""
PROMPT_PART = 0.25
"""Part of the longest sequence that the prompt takes where nothing says (judgement)."""
OUTSIDE_SHARE = 0.3 * GIB
"""Bytes that the engine's own share loses to libraries and graphs, where its cache is counted in tokens (judgement)."""
OUTSIDE_LESS, OUTSIDE_MORE = 300 * MIB, 500 * MIB
"""Bytes by which equal settings differed from run to run in the measured generations (1.5B on A100: 0.4 GiB)."""
ASLEEP_LOW, ASLEEP_HIGH = 0.85, 1.45
"""Factors on what a sleeping engine leaves: libraries differ by card and version (judgement)."""
CACHE_LOW = 0.97
"""Part of the computed cache that is there at the least: whole blocks, and graphs that differ (judgement)."""
PASS_GIVEN_BACK = 0.1
"""Part of the start-up pass by which the cache may be larger: a pass is measured, not computed (judgement)."""
RUNNING_LOW = 0.5
"""Part of the tokens in flight that the fullest step has at the least: prompts come one by one (judgement)."""
PROFILE_MLP, PROFILE_HIDDEN = 3, 4
"""bf16 tensors of the MLP's width (gate, up, product) and of the stream's that a token of it needs (judgement)."""
SAMPLED_COPIES = 2
"""fp32 copies of the logits that are sampled from at its end (judgement)."""
PROFILE_LOW, PROFILE_HIGH = 0.5, 2
"""Factors on a profiling pass that is counted from the model's widths alone: kernels fuse some of its tensors, or keep
more (judgement)."""
OWN_CACHE_LOW = 0.5
"""Part of the cache at full length where the trainer itself generates: sequences end early (judgement)."""
COPY_ROUNDING = 1.1
"""Factor on the pinned copy of a sleeping engine: blocks are rounded (judgement)."""

# --- intervals -----------------------------------------------------------------------------------------------------
NARROWEST_BELOW, NARROWEST_ABOVE = 0.08, 0.15
WIDEST_BELOW, WIDEST_ABOVE = 0.10, 0.30
WIDEST_BELOW_EXPERTS, WIDEST_ABOVE_EXPERTS = 0.18, 0.45
"""Narrowest and widest interval of a phase on a GPU, as parts of what is expected. What single owners might hold at
the worst does not come together, and drivers, versions and the allocator add what no owner has: of the measured peaks
of tests/measured at least 95 % lie inside. An awake engine's weights and cache fill a share that is set: nothing is
added above them."""

# --- rollout engine ----------------------------------------------------------------------------------------------
ASSUMED_SHARE = 0.9
"""vLLM's own gpu_memory_utilization."""
BATCHED_TOKENS, SEQUENCES = 8192, 256
"""Tokens and sequences of the engine's profiling pass where nothing sets them (vLLM)."""
GRAPHS = in_bytes("of CUDA graphs", 700 * MIB, low=300 * MIB, high=3 * GIB // 2, basis="estimated")
"""Outside the engine's share: 0.36-0.64 GiB in vLLM logs, 1-3 GiB with many capture sizes."""
RESIDUE_LOW, RESIDUE_HIGH = 0.5, 1.6
"""Factors on Mechanics.sleep_residue_bytes: half where nothing was captured (judgement); 1.1-1.2 GiB (4B), up to 3 GiB
with graphs of large models (vLLM issues)."""
SYNC_BUCKET = in_bytes("of a bucket", 512 * MIB)
"""The transfer buffer between separate trainer and engine (NCCL broadcast of one tensor or bucket)."""

# --- host --------------------------------------------------------------------------------------------------------
PROCESS_LOW, PROCESS_HIGH = 0.6, 1.5
"""Factors on Mechanics.host_process_bytes: a worker with CUDA, torch and an engine holds 2-6 GB."""
DRIVER = in_bytes("of the driver", 4_000_000_000, basis="estimated")
"""The driver (trainer loop, tokenizer, data set): one more process of that kind (judgement)."""
TOKEN_BYTES, RESPONSE_TOKEN_BYTES = 24, 48
"""Bytes per token and per response token of a sample in the driver's batch: ids, mask, positions (int64); log-probs,
advantages, returns, scores (verl, DataProto)."""
BATCH_COPIES = quantity("copies", 2, low=1, high=4, basis="estimated")
"""Copies of the batch in the driver and in Ray's object store while it is put and got."""
STORE_PART = 0.30
"""Part of the RAM that Ray's object store may grow to by default: a ceiling, not a use (docs.ray.io)."""
V0_ENGINE = "<0.8"
"""vLLM that runs its V0 engine unless it is told otherwise (vllm/envs.py, VLLM_USE_V1)."""
SWAP_BYTES = 4 * GIB
"""vLLM's swap_space of the V0 engine (vllm/config.py)."""
HELPER = in_bytes("", 1_000_000_000, basis="estimated")
"""A data loader, agent or reward worker: python, tokenizer, its share of pages it wrote (judgement)."""

# --- what the crash measured ----------------------------------------------------------------------------------------
DOUBTFUL_SHARE = 0.25
"""Part of the GPU from which an unexplained rest says that script and log do not go together: the ledger's own error
over measured peaks is below 15 %, and what it leaves out (fragmentation, contexts) below 10 % (judgement)."""
STAYED_SHARE = 0.1
"""Part of the GPU from which an engine's surplus is told: libraries and graphs alone are less (judgement)."""
SAME_GPU = 0.1
"""Relative difference up to which two sizes mean the same card: drivers differ by a few hundred MiB."""

# --- torch's CUDA allocator (c10/cuda/CUDACachingAllocator) -------------------------------------------------------
SMALL_SIZE, SMALL_SEGMENT = MIB, 2 * MIB
LARGE_FROM, LARGE_SEGMENT, LARGE_ROUND = 10 * MIB, 20 * MIB, 2 * MIB
"""Up to 1 MiB a 2 MiB segment is asked for; below 10 MiB one of 20 MiB; above, the size rounded up to 2 MiB."""
VOCABULARY_STEP = 128
"""Megatron pads the vocabulary to a multiple of this times the tensor-parallel size (make_vocab_size_divisible_by)."""
PRINT_STEP_GIB, PRINT_STEP_MIB = GIB * 0.005, MIB * 0.005
"""Half a unit in the last printed place of "13.91 GiB" and of "594.00 MiB"."""

EAGER_KEPT, EAGER_SCORES, EAGER_HIGH = 6, 8, 14
"""Bytes of one attention score, heads x queries x keys, where attention is not fused: kept for backward the softmax in
fp32 and its bf16 copy; in one layer the bf16 scores beside them; at most with the gradients of both in fp32
(huggingface/transformers@v4.51.0 models/qwen2/modeling_qwen2.py eager_attention_forward)."""
