"""Measured benchmarks, and how far predictions are from them.

`measurements.csv` holds public benchmarks of serving engines, one row a run; `rows` reads them and
says what each asks of the planner, `closed_form` predicts one, `compare` sets predictions beside
measurements by regime, `splits` says which rows may be fitted and which test, `ranking` whether the
best tensor parallelism is found. `python -m advisor.accuracy` prints all of it.

**Sources** are named in each row. InferenceMAX (SemiAnalysis) lengths are uniform between 0.8 and 1
of the nominal, so 0.9 of it is the mean; its launch scripts (github.com/InferenceMAX/InferenceMAX,
benchmarks/) give 10 requests for each client and, where a row has them, the token budget, the
largest batch, the memory utilization and the KV format. TensorRT-LLM's performance overview gives
the requests of its throughput runs; their largest batch and token budget are what its tool chooses
(`trtllm_bench`), as in Azure's runs, whose one engine is built for their longest lengths with 0.83
of free memory as cache. A blank `kv_cache` is the checkpoint's own, a blank
`engine_version` was not published. NVIDIA's FP8 and NVFP4 checkpoints ask for an FP8 cache, which
TensorRT-LLM follows, and vLLM from 0.12 on.

**Readings.** Llama 3 and 3.3 stand under 3.1, Qwen2 under Qwen2.5 (same shapes); AMD's ATOM is
`generic`. Attention-DP ranks are counted in `tensor_parallel`, as everywhere here. A gap that a
source calls ITL is kept as ITL; where an engine streams tokens in bunches (every 10, 20 or 30), it
is the bunch's and is not kept. In 17 runs the slowest requests waited 20 s or more for a first
token, over 60 times the median (`notes`), which no steady engine does: their means of TTFT and E2E
and their throughput are not kept, medians and TPOT are. `lengths` are `fixed`, `uniform` (0.8 to 1
of the nominal) or a published `mean` whose spread is not known. Loads:

- `fixed_concurrency`: a closed loop of `concurrency` clients;
- `open`: arrivals at `request_rate_per_s`, 500 of them where `requests` says so;
- `burst`: `requests` all at once, then none;
- `saturated`: a queue that is never empty, or of so many `requests`; throughput only;
- `static_batch`: `concurrency` requests begin and end together.

`ttft_unstated_ms` is a TTFT of which the source does not say whether it is a mean or a median, nor
how the run began: it is kept, and compared under its own name.

**Left out**, 354 of 954 rows that were collected: 157 of models without a config here
(Qwen3.5-397B, GPT-20B, Megatron-530B, BLOOM, two Nemotrons, GLM-5, Falcon-180B, CodeLlama-13b,
GPT-J, Llama-30B, PaLM, InternLM); 92 of engines whose scheduling is not one of ours (gpt-fast,
NeuronX, MLC-LLM, LMDeploy, DeepSpeed, vLLM 0.2); 45 of MLPerf (whole systems whose parallelism or
lengths are not published); 19 of A100 pairs without peer access, or over a network of which nothing
is said; 16 of vLLM 0.6.1 on MI300X, a quarter of what is predicted where runs of 2025 reach more
than half; 14 without lengths; 10 on MI250 that do not say whether a device is half a card; and one
on a card that is not in the catalogue. None has speculative decoding.

`tier` A is a controlled latency under a known load, B a saturated or partly undocumented run.
"""

from __future__ import annotations
