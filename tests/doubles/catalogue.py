"""All doubles by name."""

from tests.doubles import hosted, local_servers
from tests.doubles.double import Double

DOUBLES: dict[str, Double] = {
    double.name: double
    for double in (
        local_servers.VLLM,
        local_servers.VLLM_OLD_TEMPLATE,
        local_servers.SGLANG,
        local_servers.LLAMA_CPP,
        local_servers.OLLAMA,
        hosted.OPENAI,
        hosted.OPENAI_REASONING,
        hosted.AZURE,
        hosted.OPENROUTER,
        hosted.DEEPSEEK,
        hosted.DEEPSEEK_THINKING,
        hosted.MISTRAL,
        hosted.MISTRAL_THINKING,
        hosted.GEMINI,
        hosted.ANTHROPIC,
    )
}
