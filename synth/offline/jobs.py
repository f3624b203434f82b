"""Which role and job a request is: by the name of the wanted schema, else it is the agent."""

import json
from collections.abc import Callable
from typing import Any

from synth.offline import dual_control
from synth.offline.agent import agent
from synth.offline.claims_judge import judge_claims
from synth.offline.generator_agent import write_agent
from synth.offline.generator_brief import write_brief
from synth.offline.generator_issue import write_issue
from synth.offline.generator_persona import write_persona
from synth.offline.judge import judge
from synth.offline.rewriter import rewrite, wish_of
from synth.offline.settings import OfflineSettings
from synth.offline.tools.domain import write_domain
from synth.offline.tools.job import write_tools
from synth.offline.user import user_turn
from synth.offline.world_jobs import WORLD_JOBS
from synth.openai_server.request import ChatRequest
from synth.openai_server.response import Answer
from synth.openai_server.sampling import conform, sample

Job = Callable[[ChatRequest, OfflineSettings], Any]

_JOBS: dict[str, Job] = {
    "agent": write_agent,
    "persona": write_persona,
    "brief": write_brief,
    "issue": write_issue,
    "tools": write_tools,
    "domain": write_domain,
    "user_turn": user_turn,
    "judgement": judge,
    "claims": judge_claims,
} | WORLD_JOBS


def answer_of(request: ChatRequest, settings: OfflineSettings) -> Answer:
    schema, text = request.json_schema, request.messages[-1]["content"]
    if schema is None and dual_control.users_turn(request):
        return dual_control.act(request)
    if schema is None and (wish := wish_of(request)) is not None:
        return rewrite(request, wish, settings)
    if schema is None:
        return agent(request, settings)
    job = _JOBS.get(request.schema_name or "")
    made = conform(job(request, settings), schema, text) if job else sample(schema, text)
    return Answer(json.dumps(made, ensure_ascii=False))
