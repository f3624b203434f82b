"""All doubles by name."""

from tests.doubles import hosted, local_servers, openai_family
from tests.doubles.double import Double

DOUBLES: dict[str, Double] = {
    double.name: double
    for double in (
        local_servers.VLLM,
        local_servers.VLLM_OLD_TEMPLATE,
        local_servers.VLLM_NO_SYSTEM,
        local_servers.SGLANG,
        local_servers.LLAMA_CPP,
        local_servers.OLLAMA,
        openai_family.OPENAI,
        openai_family.OPENAI_REASONING,
        openai_family.AZURE,
        openai_family.OPENROUTER,
        hosted.DEEPSEEK,
        hosted.DEEPSEEK_THINKING,
        hosted.MISTRAL,
        hosted.MISTRAL_THINKING,
        hosted.GEMINI,
        hosted.ANTHROPIC,
    )
}
